import { request } from '../caller.js';
import { MARK } from '../fuzz/hostile-values.js';
import { about, type RulesOn } from '../rule.js';
import { ownParameters, secretParts, secretsIn, tells } from '../secrets.js';
import type { Sent, Trial } from '../trial.js';

/** What is secret stays between the caller and the grant, also where it is wrong. */
export const secretRules: RulesOn = ({ body }) => [
  {
    title: 'tells nothing of what it was sent, neither in its answers nor in log, audit or metrics',
    async check(trial) {
      const secrets = new Set<string>();
      for (const sent of await requestsOf(trial)) {
        for (const secret of secretsIn(body, sent)) secrets.add(secret);
        const headers = { ...(await trial.callerHeaders()), ...(await cookiesOf(trial)) };
        for (const value of Object.values(headers)) for (const part of secretParts(value)) secrets.add(part);
        const answer = await about(JSON.stringify(sent), () => trial.ask(sent, { headers }));
        for (const part of secretParts(`${answer.body.access_token}`)) secrets.add(part);
        for (const line of answer.cookies) for (const part of secretParts(line.split(';')[0] ?? '')) secrets.add(part);
      }
      await insistOnSilence(trial, secrets);
    },
  },
];

/** Valid ones; each own parameter changed a little, so that it fits its rules and is wrong; each with a mark. */
async function requestsOf(trial: Trial): Promise<Sent[]> {
  const requests = [await trial.body(), await trial.body()];
  for (const name of ownParameters(trial.declared.body)) {
    const { [name]: value = '' } = await trial.body();
    if (typeof value !== 'string') continue;
    for (const wrong of [...almost(value), MARK, `${value}${MARK}`, `${MARK}${value}`])
      requests.push(await trial.body({ [name]: wrong }));
  }
  return requests;
}

/** Texts of the same form: another digit for a digit, another letter for a letter; at the end, the beginning, within. */
function almost(text: string): string[] {
  const places = [text.length - 1, 0, text.length >> 1].filter((at) => /[0-9a-z]/i.test(text[at] ?? ''));
  return places.map((at) => {
    const character = text[at] as string;
    const other = /\d/.test(character) ? `${(Number(character) + 1) % 10}` : character === 'a' ? 'b' : 'a';
    return `${text.slice(0, at)}${other}${text.slice(at + 1)}`;
  });
}

/** A browser's cookies, where the caller shows none of its own. */
async function cookiesOf(trial: Trial): Promise<{ cookie?: string }> {
  const { cookie } = await trial.callerHeaders();
  return cookie === undefined ? { cookie: (await trial.house.newCustomer()).cookie } : {};
}

async function insistOnSilence({ house, output }: Trial, secrets: Set<string>): Promise<void> {
  const { text: metrics } = await request(`${house.service.managementUrl}/metrics`, {});
  const places = { log: output.text, audit: JSON.stringify(house.service.audit), metrics };
  for (const [place, text] of Object.entries(places)) {
    const told = [...secrets].find((secret) => tells(text, secret));
    if (told === undefined) continue;
    const line = text.split('\n').find((each) => tells(each, told));
    throw new Error(`the ${place} tells ${told}: ${line?.slice(0, 500)}`);
  }
}
