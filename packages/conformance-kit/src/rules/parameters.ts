import { declaredProperties } from 'customer-authorization-service/testing-host';
import { about, forEach } from '../cases.js';
import { assertDeclared } from '../declared-parameters.js';
import { STRANGE_TEXTS } from '../fuzz/hostile-values.js';
import type { GrantTestContext } from '../grant-test-context.js';
import type { Rule, RuleSet } from '../rule.js';
import { ownParameters } from '../secret-search.js';
import { required, textsOf, typeOf, typesOf } from './body-schema.js';
import { FORM_RULES } from './forms.js';

const HUGE_VALUE_CHARACTERS = 10_000;
const WRONG_TYPES = [7, true, null, [], {}, ['text'], 'text'];

/** Every declared parameter: omitted, repeated, of another type, empty, huge, or with hostile text. */
export const parameterRules: RuleSet = ({ body, form }) => {
  const declared = declaredProperties(body);
  const rules: Rule[] = [
    {
      title: 'declares every parameter of a valid request in its body class',
      async check(context) {
        assertDeclared(await context.body(), body);
      },
    },
    {
      title: 'refuses a request without a required parameter, and names it',
      check: (context) =>
        forEach(required(context), async (name) => {
          const { [name]: _removed, ...others } = await context.body();
          await about(name, () =>
            context.expectError({ error: 'invalid_request', hint: new RegExp(`^${name}: required$`) }, others),
          );
        }),
    },
    {
      title: 'responds by the protocol to a request without its optional parameters',
      check: (context) =>
        forEach(optional(context), async (name) => {
          const { [name]: _removed, ...others } = await context.body();
          await about(name, () => context.send(others));
        }),
    },
    {
      title: 'rejects a repeated parameter, in every spelling of its name',
      check: (context) =>
        forEach(declared, async (name) => {
          const parameters = { [name]: 'text', ...(await context.body()) };
          const text = JSON.stringify(parameters).slice(1);
          const escaped = `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}"`;
          for (const written of [JSON.stringify(name), escaped]) {
            const doubled = `{${written}:${JSON.stringify(parameters[name])},${text}`;
            await about(name, () =>
              context.expectError({ error: 'invalid_request', hint: /^body: .*more than once/ }, doubled),
            );
          }
        }),
    },
    {
      title: 'refuses a parameter of a wrong type, and names it',
      check: (context) =>
        forEach(declared, async (name) => {
          const types = typesOf(context, name);
          if (types.length === 0) throw new Error(`${name}: has no rule for its type, such as @IsString()`);
          const { [name]: valid } = await context.body();
          for (const value of [...WRONG_TYPES, [valid]].filter((each) => !types.includes(typeOf(each)))) {
            const parameters = await context.body({ [name]: value });
            const what = `${name}: ${JSON.stringify(value)}`;
            await about(what, () => context.expectError({ error: 'invalid_request', hint: named(name) }, parameters));
          }
        }),
    },
    {
      title: 'refuses an empty parameter, and names it',
      check: (context) =>
        forEach(textsOf(context, declared), async (name) => {
          const hint = required(context).includes(name) ? new RegExp(`^${name}: required$`) : named(name);
          const parameters = await context.body({ [name]: '' });
          await about(name, () => context.expectError({ error: 'invalid_request', hint }, parameters));
        }),
    },
    {
      title: 'refuses a parameter of 10,000 characters',
      check: (context) =>
        forEach(textsOf(context, declared), async (name) => {
          const right = await context.body();
          const longer = `${right[name] ?? 'x'}`.padEnd(HUGE_VALUE_CHARACTERS, 'x');
          for (const value of ['x'.repeat(HUGE_VALUE_CHARACTERS), longer]) {
            await about(`${name}; give it a @MaxLength()`, async () =>
              context.expectError({}, await context.body({ [name]: value })),
            );
          }
        }),
    },
    {
      title: 'does not receive a parameter that its body class does not declare',
      async check(context) {
        const rest = JSON.stringify(await context.body()).slice(1);
        const more = ['__proto__', 'constructor', 'toString', 'unknown'].filter((name) => !declared.includes(name));
        await context.expectToken(`{${more.map((name) => `"${name}":{"polluted":true},`).join('')}${rest}`);
      },
    },
    {
      title: 'responds by the protocol to unusual texts in its own parameters and changes no prototype',
      async check(context) {
        const right = await context.body();
        const texts = textsOf(context, ownParameters(body));
        const strange = texts.flatMap((name) => STRANGE_TEXTS.map((text): [string, string] => [name, text]));
        await forEach(strange, ([name, text]) =>
          about(`${name}: ${JSON.stringify(text)}`, () => context.send({ ...right, [name]: text })),
        );
        const polluted = context.pollutedPrototypes();
        if (polluted.length > 0) throw new Error(`touched: ${polluted}`);
      },
    },
  ];
  return form ? [...rules, ...FORM_RULES] : rules;
};

function optional(context: GrantTestContext): string[] {
  const requiredNames = required(context);
  return declaredProperties(context.declared.body).filter((name) => !requiredNames.includes(name));
}

function named(name: string): RegExp {
  return new RegExp(`^${name}: `);
}
