import { declaredProperties } from 'customer-authorization-service/testing-host';
import { about, forEach } from '../cases.js';
import type { RuleSet } from '../grant-test-context.js';
import { bodyRules } from './bodies.js';
import { required } from './body-schema.js';

/** The parameters of a token request (protocol §2.4). The endpoint reads the body, as JSON or as a form. */
export const parameterRules: RuleSet = ({ body }) => [
  ...bodyRules,
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
];
