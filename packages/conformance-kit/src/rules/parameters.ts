import { declaredProperties } from 'customer-authorization-service/testing-host';
import { about, forEach } from '../cases.js';
import type { Rule, RuleSet } from '../grant-test-context.js';
import type { Parameters } from '../token-request.js';
import { bodyRules } from './bodies.js';
import { required, textsOf } from './body-schema.js';

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

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const formOf = (parameters: Parameters) => `${new URLSearchParams(parameters as Record<string, string>)}`;

const REJECTS_FORMS: Rule = {
  title: 'refuses a form, because it does not declare `form`',
  async check(context) {
    const expected = { error: 'invalid_request', hint: /^body: not JSON$/ };
    await context.expectError(expected, formOf(await context.body()), { headers: FORM });
  },
};

/** Rules for grants that accept form bodies. They cover only values that a form can contain. */
const FORM_RULES: Rule[] = [
  {
    title: 'reads its parameters from a form, because it declares `form`',
    check: async (context) => context.expectToken(formOf(await context.body()), { headers: FORM }),
  },
  {
    title: 'refuses a repeated parameter in a form',
    check: async (context) => {
      const parameters = await context.body();
      await forEach(Object.keys(parameters), (name) => {
        const repeated = `${formOf(parameters)}&${name}=text`;
        const expected = { error: 'invalid_request', hint: /^body: .*more than once/ };
        return about(name, () => context.expectError(expected, repeated, { headers: FORM }));
      });
    },
  },
  {
    title: 'treats an empty parameter of a form as a missing parameter',
    check: async (context) => {
      await forEach(textsOf(context.bodySchema), async (name) => {
        if (name === 'grant_type') return; // without it, the endpoint finds no grant that accepts forms
        const form = formOf(await context.body({ [name]: '' }));
        const missing = { error: 'invalid_request', hint: new RegExp(`^${name}: required$`) };
        const isRequired = required(context.bodySchema).includes(name);
        await about(name, async () =>
          isRequired
            ? context.expectError(missing, form, { headers: FORM })
            : context.expectToken(form, { headers: FORM }),
        );
      });
    },
  },
];
