import { declaredProperties } from '../../platform/declared-properties.js';
import { STRANGE_TEXTS } from '../fuzz/hostile-values.js';
import type { GrantTestContext, Parameters } from '../grant-test-context.js';
import { about, forEach, type Rule, type RuleSet } from '../rule.js';
import { ownParameters } from '../secret-search.js';

const HUGE_LENGTH = 10_000;
const WRONG_TYPES = [7, true, null, [], {}, ['text'], 'text'];
const COMMON_PARAMETERS = ['grant_type', 'client_id'];

/** Every parameter that the body class declares: left out, doubled, of another type, empty, huge, strange. */
export const parameterRules: RuleSet = ({ body, form }) => {
  const declared = declaredProperties(body);
  const rules: Rule[] = [
    {
      title: 'declares, by a rule of its body class, every parameter that a request for a token has',
      async check(context) {
        const sent = await context.body();
        const unknown = Object.keys(sent).filter((name) => !declared.includes(name));
        if (unknown.length > 0) throw new Error(`${unknown}: sent by \`valid\`, not declared in ${body.name}`);
      },
    },
    {
      title: 'refuses a request without a required parameter, and names it',
      check: (context) =>
        forEach(required(context), async (name) => {
          const { [name]: _left, ...others } = await context.body();
          await about(name, () =>
            context.expectError({ error: 'invalid_request', hint: new RegExp(`^${name}: required$`) }, others),
          );
        }),
    },
    {
      title: 'answers a request without its optional parameters by the protocol',
      check: (context) =>
        forEach(optional(context), async (name) => {
          const { [name]: _left, ...others } = await context.body();
          await about(name, () => context.send(others));
        }),
    },
    {
      title: 'refuses a parameter that comes twice, however its name is spelt',
      check: (context) =>
        forEach(declared, async (name) => {
          const sent = { [name]: 'text', ...(await context.body()) };
          const text = JSON.stringify(sent).slice(1);
          const escaped = `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}"`;
          for (const spelt of [JSON.stringify(name), escaped]) {
            const doubled = `{${spelt}:${JSON.stringify(sent[name])},${text}`;
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
          const { [name]: right } = await context.body();
          for (const value of [...WRONG_TYPES, [right]].filter((each) => !types.includes(typeOf(each)))) {
            const sent = await context.body({ [name]: value });
            const what = `${name}: ${JSON.stringify(value)}`;
            await about(what, () => context.expectError({ error: 'invalid_request', hint: named(name) }, sent));
          }
        }),
    },
    {
      title: 'refuses an empty parameter, and names it',
      check: (context) =>
        forEach(textsOf(context, declared), async (name) => {
          const hint = required(context).includes(name) ? new RegExp(`^${name}: required$`) : named(name);
          const sent = await context.body({ [name]: '' });
          await about(name, () => context.expectError({ error: 'invalid_request', hint }, sent));
        }),
    },
    {
      title: 'refuses a parameter of 10,000 characters',
      check: (context) =>
        forEach(textsOf(context, declared), async (name) => {
          const right = await context.body();
          const longer = `${right[name] ?? 'x'}`.padEnd(HUGE_LENGTH, 'x');
          for (const value of ['x'.repeat(HUGE_LENGTH), longer]) {
            await about(`${name}; give it a @MaxLength()`, async () =>
              context.expectError({}, await context.body({ [name]: value })),
            );
          }
        }),
    },
    {
      title: 'never sees a parameter that its body class does not declare',
      async check(context) {
        const sent = JSON.stringify(await context.body()).slice(1);
        const more = ['__proto__', 'constructor', 'toString', 'unknown'].filter((name) => !declared.includes(name));
        await context.expectToken(`{${more.map((name) => `"${name}":{"polluted":true},`).join('')}${sent}`);
      },
    },
    {
      title: 'answers strange texts in its own parameters by the protocol, and leaves the prototypes alone',
      async check(context) {
        const right = await context.body();
        const texts = textsOf(context, ownParameters(body));
        const strange = texts.flatMap((name) => STRANGE_TEXTS.map((text): [string, string] => [name, text]));
        await forEach(strange, ([name, text]) =>
          about(`${name}: ${JSON.stringify(text)}`, () => context.send({ ...right, [name]: text })),
        );
        const touched = context.pollutedPrototypes();
        if (touched.length > 0) throw new Error(`touched: ${touched}`);
      },
    },
  ];
  return form ? [...rules, ...FORM_RULES] : rules;
};

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** A body that says it is a form; what a form cannot write is no parameter of one. */
const FORM_RULES: Rule[] = [
  {
    title: 'refuses a parameter that comes twice in a form',
    check: async (context) => {
      const sent = await context.body();
      await forEach(Object.keys(sent), (name) => {
        const doubled = `${new URLSearchParams(sent as Record<string, string>)}&${name}=text`;
        const refusal = { error: 'invalid_request', hint: /^body: .*more than once/ };
        return about(name, () => context.expectError(refusal, doubled, { headers: FORM }));
      });
    },
  },
  {
    title: 'treats an empty parameter of a form as one that is left out',
    check: async (context) => {
      const { body } = context.declared;
      await forEach(textsOf(context, declaredProperties(body)), async (name) => {
        if (name === 'grant_type') return; // a form without it is for no grant that reads forms
        const sent = (await context.body({ [name]: '' })) as Record<string, string>;
        const form = `${new URLSearchParams(sent)}`;
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

function required({ schema, declared: { body } }: GrantTestContext): string[] {
  const names = new Set([...COMMON_PARAMETERS, ...(schema.required ?? [])]);
  return declaredProperties(body).filter((name) => names.has(name));
}

function optional(context: GrantTestContext): string[] {
  const needed = required(context);
  return declaredProperties(context.declared.body).filter((name) => !needed.includes(name));
}

/** The JSON types that the rules of a parameter admit. */
function typesOf({ schema }: GrantTestContext, name: string): string[] {
  const { type, const: only, enum: words } = (schema.properties[name] ?? {}) as Parameters & { enum?: unknown[] };
  if (type !== undefined) return [type].flat().map((each) => (each === 'integer' ? 'number' : `${each}`));
  if (words) return words.map(typeOf);
  return only === undefined ? [] : [typeOf(only)];
}

function textsOf(context: GrantTestContext, names: string[]): string[] {
  return names.filter((name) => typesOf(context, name).includes('string'));
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function named(name: string): RegExp {
  return new RegExp(`^${name}: `);
}
