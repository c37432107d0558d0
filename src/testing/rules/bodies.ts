import { about, type Rule, type RulesOn } from '../rule.js';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const NO_OBJECTS = ['[]', '7', '"text"', 'null', 'true', '[{}]'];
const NO_JSON = ['', '{', "{'a':1}", '<xml/>', '\u0000', '{"a":1}{"a":1}'];

/** The message as a whole (contract, section 5). A grant never sees it: the endpoint reads it. */
export const bodyRules: RulesOn = ({ form }) => [
  {
    title: 'reads JSON whatever the Content-Type says',
    async check(trial) {
      const types = ['text/plain', 'application/json', FORM['content-type'], 'nonsense', undefined];
      for (const type of types)
        await about(`${type}`, async () => trial.granted(await trial.body(), { headers: { 'content-type': type } }));
    },
  },
  {
    title: 'refuses a body of more than 16 KiB',
    async check(trial) {
      const text = JSON.stringify(await trial.body());
      await trial.granted(text.padEnd(16 * 1024));
      await trial.refused({ status: 413, error: 'payload_too_large' }, text.padEnd(16 * 1024 + 1));
    },
  },
  {
    title: 'refuses a body that is not JSON',
    async check(trial) {
      for (const text of NO_JSON)
        await about(text, () => trial.refused({ error: 'invalid_request', hint: /^body: not JSON$/ }, text));
      const bytes = Buffer.from([...Buffer.from(JSON.stringify(await trial.body())), 0xff]);
      await trial.refused({ error: 'invalid_request', hint: /^body: not JSON$/ }, bytes);
    },
  },
  {
    title: 'refuses JSON that is no object',
    async check(trial) {
      for (const text of NO_OBJECTS)
        await about(text, () =>
          trial.refused({ error: 'invalid_request', hint: /^body: must be a JSON object$/ }, text),
        );
    },
  },
  form ? READS_FORMS : REFUSES_FORMS,
];

const READS_FORMS: Rule = {
  title: 'reads its parameters as a form too, as it declares',
  async check(trial) {
    const sent = (await trial.body()) as Record<string, string>;
    await trial.granted(`${new URLSearchParams(sent)}`, { headers: FORM });
  },
};

const REFUSES_FORMS: Rule = {
  title: 'reads no form, which it does not declare',
  async check(trial) {
    const sent = (await trial.body()) as Record<string, string>;
    const refusal = { error: 'invalid_request', hint: /^body: not JSON$/ };
    await trial.refused(refusal, `${new URLSearchParams(sent)}`, { headers: FORM });
  },
};
