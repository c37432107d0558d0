import { declaredProperties } from 'customer-authorization-service/testing-host';
import { about, forEach } from '../cases.js';
import { STRANGE_TEXTS } from '../fuzz/hostile-values.js';
import { assertFits } from '../stored-cells.js';
import type { RuleFor, TestContext } from '../test-context.js';
import type { ExpectedError } from '../token-request.js';
import { assertBounded, type BodySchema, longestText, required, textsOf, typeOf, typesOf } from './body-schema.js';

const HUGE_VALUE_CHARACTERS = 10_000;
const WRONG_TYPES = [7, true, null, [], {}, ['text'], 'text'];
const NO_OBJECTS = ['[]', '7', '"text"', 'null', 'true', '[{}]'];
const SHORTEN = 'give it the @MaxLength() of its column';
const NO_JSON = ['{', "{'a':1}", '<xml/>', '\u0000', '{"a":1}{"a":1}'];

const invalid = (hint: RegExp): ExpectedError => ({ error: 'invalid_request', hint });
const requires = (name: string) => invalid(new RegExp(`^${name}: required$`));
const names = (name: string) => invalid(new RegExp(`^${name}: `));

/** The body of a grant or a route (protocol §2.4 and §2.5). A route without a body satisfies these rules. */
export const bodyRules: RuleFor<TestContext>[] = [
  bodyRule('refuses a body of more than 16 KiB', async (context) => {
    const send = await context.newRequest();
    const padded = (size: number) => send({ body: (own) => JSON.stringify(own).padEnd(size) });
    if ((await padded(16 * 1024)).status === 413) throw new Error('refused with 16 KiB');
    context.assertError({ status: 413, error: 'payload_too_large' }, await padded(16 * 1024 + 1));
  }),
  bodyRule('refuses a body that is not JSON', async (context, body) => {
    const hint = invalid(/^body: not JSON$/);
    await context.refusesEach(NO_JSON, hint, (text) => ({ body: () => text }));
    const noUtf8 = (own: object) => Buffer.concat([Buffer.from(JSON.stringify(own)), Buffer.from([0xff])]);
    await context.refuses(hint, { body: noUtf8 });
    // a route may take an empty body for one without parameters
    if (required(body).length > 0)
      await context.refuses(invalid(/^(body: not JSON|\w+: required)$/), { body: () => '' });
  }),
  bodyRule('refuses JSON that is not an object', (context) =>
    context.refusesEach(NO_OBJECTS, invalid(/^body: must be a JSON object$/), (text) => ({ body: () => text })),
  ),
  bodyRule('refuses a request without a required parameter, and names it', (context, body) =>
    forEach(required(body), (name) =>
      about(name, () => context.refuses(requires(name), { body: ({ [name]: _removed, ...others }) => others })),
    ),
  ),
  bodyRule('refuses a repeated parameter, in every spelling of its name', (context, body) =>
    forEach(declaredProperties(body.body), async (name) => {
      const escaped = `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}"`;
      for (const written of [JSON.stringify(name), escaped])
        await about(name, () =>
          context.refuses(invalid(/^body: .*more than once/), {
            body: (own) => {
              const all = { [name]: 'text', ...own };
              return `{${written}:${JSON.stringify(all[name])},${JSON.stringify(all).slice(1)}`;
            },
          }),
        );
    }),
  ),
  bodyRule('refuses a parameter of a wrong type, and names it', (context, body) =>
    forEach(declaredProperties(body.body), async (name) => {
      const types = typesOf(body, name);
      if (types.length === 0) throw new Error(`${name}: has no rule for its type, such as @IsString()`);
      const wrong = WRONG_TYPES.filter((value) => !types.includes(typeOf(value)));
      for (const value of wrong)
        await about(`${name}: ${JSON.stringify(value)}`, () =>
          context.refuses(names(name), { body: (own) => ({ ...own, [name]: value }) }),
        );
      if (types.includes('array') || !types.includes('string')) return;
      await about(`${name}, in an array`, () =>
        context.refuses(names(name), { body: (own) => ({ ...own, [name]: [own[name]] }) }),
      );
    }),
  ),
  bodyRule('refuses an empty parameter, and names it', (context, body) =>
    forEach(textsOf(body), (name) => {
      const expected = required(body).includes(name) ? requires(name) : names(name);
      return about(name, () => context.refuses(expected, { body: (own) => ({ ...own, [name]: '' }) }));
    }),
  ),
  bodyRule('refuses a parameter of 10,000 characters', async (context, body) => {
    const right = await context.parameters();
    assertBounded(body, right);
    await forEach(textsOf(body), async (name) => {
      for (const start of ['x', `${right[name] ?? 'x'}`]) {
        const value = start.padEnd(HUGE_VALUE_CHARACTERS, 'x');
        await about(`${name}; give it a @MaxLength(), or a pattern from ^ to $`, () =>
          context.refuses({ status: [400, 404] }, { body: (own) => ({ ...own, [name]: value }) }),
        );
      }
    });
  }),
  bodyRule('stores no longer text than its columns have characters', async (context, body) => {
    for (const name of textsOf(body, context.ownParameters)) {
      const send = await context.newRequest();
      await about(`${name}, with the longest text that its rules accept; ${SHORTEN}`, async () => {
        await send({ body: (own) => ({ ...own, [name]: longestText(body.body, own, name) }) });
        await assertFits(context.environment.service);
      });
    }
  }),
  bodyRule(
    'responds by the protocol to unusual texts in its own parameters and changes no prototype',
    async (context, body) => {
      const send = await context.newRequest();
      const strange = textsOf(body, context.ownParameters).flatMap((name) =>
        STRANGE_TEXTS.map((text) => ({ name, text })),
      );
      await forEach(strange, ({ name, text }) =>
        about(`${name}: ${JSON.stringify(text)}`, () => send({ body: (own) => ({ ...own, [name]: text }) })),
      );
      context.assertPrototypesUnchanged();
    },
  ),
];

function bodyRule(title: string, check: (context: TestContext, body: BodySchema) => Promise<unknown>) {
  return { title, check: async (context: TestContext) => context.bodySchema && check(context, context.bodySchema) };
}
