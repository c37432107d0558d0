import { declaredProperties } from 'customer-authorization-service/testing-host';
import { about, forEach } from '../cases.js';
import type { Rule } from '../rule.js';
import type { Parameters } from '../token-request.js';
import { required, textsOf } from './body-schema.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const formOf = (parameters: Parameters) => `${new URLSearchParams(parameters as Record<string, string>)}`;

export const REJECTS_FORMS: Rule = {
  title: 'refuses a form, because it does not declare `form`',
  async check(context) {
    const expected = { error: 'invalid_request', hint: /^body: not JSON$/ };
    await context.expectError(expected, formOf(await context.body()), { headers: FORM });
  },
};

/** Rules for grants that accept form bodies. They cover only values that a form can contain. */
export const FORM_RULES: Rule[] = [
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
      const { body } = context.declared;
      await forEach(textsOf(context.bodySchema, declaredProperties(body)), async (name) => {
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
