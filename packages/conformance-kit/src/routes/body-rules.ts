import { declaredProperties } from 'customer-authorization-service/testing-host';
import { about } from '../cases.js';
import { STRANGE_TEXTS } from '../fuzz/hostile-values.js';
import { type BodySchema, required, textsOf, typeOf, typesOf } from '../rules/body-schema.js';
import type { Parameters } from '../token-request.js';
import type { RouteRule, RouteTestContext } from './route-test-context.js';

const WRONG_TYPES = [7, true, null, [], {}, ['text'], 'text'];
const NO_JSON_OBJECTS = ['{', "{'a':1}", '<xml/>', '[]', '7', '"text"', 'null'];

/** The body of a route (protocol §2.4 and §2.5). A route without a body satisfies these rules. */
export const routeBodyRules: RouteRule[] = [
  bodyRule('refuses a body that is no JSON object, or has more than 16 KiB', async (context) => {
    const sent = await context.valid();
    for (const body of NO_JSON_OBJECTS)
      await about(body, () => context.expectError([400], { ...sent, body }, /^body: /));
    const text = JSON.stringify(sent.body ?? {});
    await context.expectError([413], { ...sent, body: text.padEnd(16 * 1024 + 1) });
  }),
  bodyRule('refuses a request without a required parameter, and names it', async (context, body) => {
    const sent = await context.valid();
    for (const name of required(body)) {
      const { [name]: _removed, ...others } = (sent.body ?? {}) as Parameters;
      await about(name, () => context.expectError([400], { ...sent, body: others }, new RegExp(`^${name}: required$`)));
    }
  }),
  bodyRule('refuses a repeated parameter', async (context, body) => {
    const sent = await context.valid();
    const own = sent.body ?? {};
    const text = JSON.stringify(own).slice(1);
    for (const name of declaredProperties(body.declared.body).filter((each) => each in (own as object)))
      await about(name, () =>
        context.expectError([400], { ...sent, body: `{"${name}":"text",${text}` }, /^body: .*more than once/),
      );
  }),
  bodyRule('refuses a parameter of a wrong type, an empty and a huge one, and names it', async (context, body) => {
    const sent = await context.valid();
    for (const name of declaredProperties(body.declared.body)) {
      const types = typesOf(body, name);
      if (types.length === 0) throw new Error(`${name}: has no rule for its type, such as @IsString()`);
      const wrong = WRONG_TYPES.filter((value) => !types.includes(typeOf(value)));
      const texts = types.includes('string') ? ['', 'x'.repeat(10_000)] : [];
      for (const value of [...wrong, ...texts]) {
        const changed = { ...sent, body: { ...(sent.body as object), [name]: value } };
        const what = `${name}: ${JSON.stringify(value).slice(0, 20)}`;
        await about(what, () => context.expectError([400, 404], changed));
      }
    }
  }),
  bodyRule('responds by the protocol to unusual texts in its parameters', async (context, body) => {
    const sent = await context.valid();
    for (const name of textsOf(body, declaredProperties(body.declared.body)))
      for (const text of STRANGE_TEXTS)
        await about(`${name}: ${JSON.stringify(text)}`, () =>
          context.send({ ...sent, body: { ...(sent.body as object), [name]: text } }),
        );
  }),
];

function bodyRule(title: string, check: (context: RouteTestContext, body: BodySchema) => Promise<void>): RouteRule {
  return { title, check: async (context) => context.body && check(context, context.body) };
}
