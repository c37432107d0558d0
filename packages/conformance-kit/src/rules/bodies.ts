import { about } from '../cases.js';
import type { Rule, RuleSet } from '../rule.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const NO_OBJECTS = ['[]', '7', '"text"', 'null', 'true', '[{}]'];
const NO_JSON = ['', '{', "{'a':1}", '<xml/>', '\u0000', '{"a":1}{"a":1}'];

/** The format of request bodies (protocol §2.4). The endpoint reads the body, not the grant. */
export const bodyRules: RuleSet = ({ form }) => [
  {
    title: 'reads JSON with any Content-Type',
    async check(context) {
      const types = ['text/plain', 'application/json', FORM['content-type'], 'nonsense', undefined];
      for (const type of types)
        await about(`${type}`, async () =>
          context.expectToken(await context.body(), { headers: { 'content-type': type } }),
        );
    },
  },
  {
    title: 'refuses a body of more than 16 KiB',
    async check(context) {
      const text = JSON.stringify(await context.body());
      await context.expectToken(text.padEnd(16 * 1024));
      await context.expectError({ status: 413, error: 'payload_too_large' }, text.padEnd(16 * 1024 + 1));
    },
  },
  {
    title: 'refuses a body that is not JSON',
    async check(context) {
      for (const text of NO_JSON)
        await about(text, () => context.expectError({ error: 'invalid_request', hint: /^body: not JSON$/ }, text));
      const bytes = Buffer.from([...Buffer.from(JSON.stringify(await context.body())), 0xff]);
      await context.expectError({ error: 'invalid_request', hint: /^body: not JSON$/ }, bytes);
    },
  },
  {
    title: 'refuses JSON that is not an object',
    async check(context) {
      for (const text of NO_OBJECTS)
        await about(text, () =>
          context.expectError({ error: 'invalid_request', hint: /^body: must be a JSON object$/ }, text),
        );
    },
  },
  form ? READS_FORMS : REJECTS_FORMS,
];

const READS_FORMS: Rule = {
  title: 'reads its parameters from a form, because it declares `form`',
  async check(context) {
    const parameters = (await context.body()) as Record<string, string>;
    await context.expectToken(`${new URLSearchParams(parameters)}`, { headers: FORM });
  },
};

const REJECTS_FORMS: Rule = {
  title: 'refuses a form, because it does not declare `form`',
  async check(context) {
    const parameters = (await context.body()) as Record<string, string>;
    const expected = { error: 'invalid_request', hint: /^body: not JSON$/ };
    await context.expectError(expected, `${new URLSearchParams(parameters)}`, { headers: FORM });
  },
};
