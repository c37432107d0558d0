import { GrantSubject } from '../grant-subject.js';
import { estimatedBits, wrongValues } from '../guess-values.js';
import { request } from '../http-client.js';
import { replaceMethod, thenRestore } from '../replace-method.js';
import { differingTexts, parametersOf, type SentRequest, withParameter } from '../request.js';
import { about, type Rule } from '../rule.js';
import { ADDRESS, containsSecret, isPrivateText, secretParts, textsIn } from '../secret-search.js';
import { isInService } from '../service-context.js';
import { columnsWithAll, hashesOf } from '../stored-cells.js';
import type { Subject } from '../subject.js';

/** A computer tries so many values in minutes. */
const MAX_SEARCHED_BITS = 32;

const REVERSIBLE =
  'has the hash of a short text, which trying all values reverses; hash it by HMAC with a key from a file';

/** The secrets of requests and responses. */
export const secretRules: Rule<Subject>[] = [
  {
    title: 'discloses no secret on stdout, in its errors, the log, the audit or the metrics',
    async check(subject) {
      const [one, other] = [await subject.observed(), await subject.observed()];
      const known = new Set([...other.texts, ...subject.secretsIn(other.sent)]);
      const secrets = [...subject.secretsIn(one.sent), ...one.texts.filter(isPrivateText)];
      for (const value of Object.values(one.sent.headers)) secrets.push(...secretParts(value));
      for (const sent of similarTo(subject, one.sent)) {
        secrets.push(...subject.secretsIn(sent));
        await subject.send(sent);
      }
      const response = await subject.send(one.sent);
      const common = new Set(textsIn((await subject.send(other.sent)).body));
      if (response.status < 400)
        secrets.push(...textsIn(response.body).filter((text) => isPrivateText(text) && !common.has(text)));
      await assertNoSecretIn(
        subject,
        secrets.filter((secret) => !known.has(secret)),
      );
    },
  },
  {
    title: 'stores no proof in plain text, and no hash of a short code or of a phone alone',
    async check(subject) {
      const { service } = subject;
      const sent = [await subject.create(), await subject.create()] as const;
      const [one, other] = [parametersOf(sent[0]), parametersOf(sent[1])];
      const settings = JSON.stringify(subject.kit.settings ?? {});
      const secrets = subject.secretsIn(sent[0]).filter((secret) => !settings.includes(secret));
      const names = differingTexts(one, other).filter((name) => secrets.includes(`${one[name]}`));
      const valuesOf = (name: string) => [`${one[name]}`, `${other[name]}`];
      const isAddress = (name: string) => ADDRESS.test(`${one[name]}`);
      const proving = subject instanceof GrantSubject ? names.filter((name) => !isAddress(name)) : [];
      const stored = await Promise.all(proving.map((name) => columnsWithAll(service, valuesOf(name))));
      // an id in plain text proves nothing if the code next to it is hashed
      if (stored.length > 0 && stored.every(({ length }) => length > 0))
        throw new Error(`${stored.flat().join(', ')}: has a proof in plain text; store its sha256(…)`);
      for (const each of sent) await subject.send(each);
      const isShort = (name: string) => isAddress(name) || estimatedBits(`${one[name]}`) <= MAX_SEARCHED_BITS;
      for (const name of names.filter(isShort)) {
        const hashed = await columnsWithAll(service, valuesOf(name), hashesOf);
        if (hashed.length > 0) throw new Error(`${hashed.join(', ')}: ${REVERSIBLE}`);
      }
    },
  },
  {
    title: 'does not create secrets with Math.random()',
    async check(subject) {
      const [one, other] = [await sample(subject), await sample(subject)];
      const isRepeated = (name: string) => new Set(one[name]).size > 1 && `${one[name]}` === `${other[name]}`;
      const repeated = Object.keys(one).filter(isRepeated);
      const solution = 'create it with randomSecret() or randomInt()';
      if (repeated.length > 0) throw new Error(`${repeated}: ${REPEATED}; ${solution}`);
    },
  },
];

/** The request with a wrong text for each parameter that is a text. */
function similarTo(subject: Subject, sent: SentRequest): SentRequest[] {
  return subject.ownParameters
    .filter((name) => typeof sent.body?.[name] === 'string')
    .flatMap((name) =>
      wrongValues(subject.body, parametersOf(sent), name, 1).map((text) => withParameter(sent, name, text)),
    );
}

/** @throws Error if the log, the audit or the metrics have one of the secrets */
export async function assertNoSecretIn({ service, output }: Subject, secrets: string[]): Promise<void> {
  const { text: metrics } = await request(`${service.managementUrl}/metrics`, {});
  const names = metrics.replaceAll(/ \S+$/gm, ''); // a measured number may equal a short code
  const outputs = { log: output.text, audit: JSON.stringify(service.audit), metrics: names };
  for (const [name, text] of Object.entries(outputs)) {
    const found = secrets.find((secret) => containsSecret(text, secret));
    if (found === undefined) continue;
    const line = text.split('\n').find((each) => containsSecret(each, found));
    throw new Error(`the ${name} discloses ${found}: ${line?.slice(0, 500)}`);
  }
}

/** Short values may be equal by chance, but not so many in a row. */
const SAMPLE_COUNT = 10;
const REPEATED = 'repeats when Math.random() repeats its numbers';

/**
 * The texts of requests and responses while `Math.random()` of the service returns the same numbers as in each call.
 */
async function sample(subject: Subject): Promise<Record<string, string[]>> {
  let state = 1;
  const restore = replaceMethod(Math, 'random', (original) => () => {
    if (!isInService()) return original();
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  });
  return thenRestore([restore], async () => {
    const values: Record<string, string[]> = {};
    for (let count = 0; count < SAMPLE_COUNT; count++) {
      const sent = await subject.create();
      const { body } = await about(REPEATED, () => subject.expectSuccess(sent));
      const texts = Object.entries({ ...textsIn(body), ...parametersOf(sent) });
      for (const [name, value] of texts) values[name] = [...(values[name] ?? []), `${value}`];
    }
    return values;
  });
}
