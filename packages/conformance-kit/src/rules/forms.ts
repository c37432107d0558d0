import { declaredProperties } from 'customer-authorization-service/testing-host';
import { about, forEach } from '../cases.js';
import type { Rule } from '../rule.js';
import { required, textsOf } from './body-schema.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** Rules for grants that accept form bodies. They cover only values that a form can contain. */
export const FORM_RULES: Rule[] = [
  {
    title: 'refuses a repeated parameter in a form',
    check: async (context) => {
      const parameters = await context.body();
      await forEach(Object.keys(parameters), (name) => {
        const repeated = `${new URLSearchParams(parameters as Record<string, string>)}&${name}=text`;
        const expected = { error: 'invalid_request', hint: /^body: .*more than once/ };
        return about(name, () => context.expectError(expected, repeated, { headers: FORM }));
      });
    },
  },
  {
    title: 'treats an empty parameter of a form as a missing parameter',
    check: async (context) => {
      const { body } = context.declared;
      await forEach(textsOf(context, declaredProperties(body)), async (name) => {
        if (name === 'grant_type') return; // without it, the endpoint finds no grant that accepts forms
        const parameters = (await context.body({ [name]: '' })) as Record<string, string>;
        const form = `${new URLSearchParams(parameters)}`;
        const missing = { error: 'invalid_request', hint: new RegExp(`^${name}: required$`) };
        const isRequired = required(context).includes(name);
        await about(name, async () =>
          isRequired
            ? context.expectError(missing, form, { headers: FORM })
            : context.expectToken(form, { headers: FORM }),
        );
      });
    },
  },
];
