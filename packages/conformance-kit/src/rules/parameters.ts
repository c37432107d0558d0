import { declaredProperties } from 'customer-authorization-service/testing-host';
import { about, forEach } from '../cases.js';
import type { RuleSet } from '../rule.js';
import { bodyRules } from './bodies.js';
import { required } from './body-schema.js';
import { FORM_RULES, REJECTS_FORMS } from './forms.js';

const TYPES = ['text/plain', 'application/json', 'application/x-www-form-urlencoded', 'nonsense', undefined];

/** The parameters of a token request (protocol §2.4). The endpoint reads the body, not the grant. */
export const parameterRules: RuleSet = ({ body, form }) => [
  ...bodyRules,
  {
    title: 'reads JSON with any Content-Type',
    check: (context) =>
      forEach(TYPES, (type) =>
        about(`${type}`, async () => context.expectToken(await context.body(), { headers: { 'content-type': type } })),
      ),
  },
  {
    title: 'responds by the protocol to a request without its optional parameters',
    check: (context) => {
      const optional = declaredProperties(body).filter((name) => !required(context.bodySchema).includes(name));
      return forEach(optional, async (name) => {
        const { [name]: _removed, ...others } = await context.body();
        await about(name, () => context.send(others));
      });
    },
  },
  {
    title: 'does not receive a parameter that its body class does not declare',
    async check(context) {
      const rest = JSON.stringify(await context.body()).slice(1);
      const declared = declaredProperties(body);
      const more = ['__proto__', 'constructor', 'toString', 'unknown'].filter((name) => !declared.includes(name));
      await context.expectToken(`{${more.map((name) => `"${name}":{"polluted":true},`).join('')}${rest}`);
    },
  },
  ...(form ? FORM_RULES : [REJECTS_FORMS]),
];
