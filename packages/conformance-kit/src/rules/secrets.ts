import { about } from '../cases.js';
import { FUZZ_MARKER } from '../fuzz/hostile-values.js';
import type { GrantTestContext, RuleSet } from '../grant-test-context.js';
import { request } from '../http-client.js';
import { createProof, type Proof } from '../proof.js';
import { containsSecret, isPrivateText, secretParts } from '../secret-search.js';
import type { Parameters } from '../token-request.js';

/** The service never discloses the secrets of a request, whether they are valid or wrong. */
export const secretRules: RuleSet = () => [
  {
    title: 'discloses no secret of a request in its responses, the log, the audit or the metrics',
    async check(context) {
      const secrets = new Set<string>();
      for (const parameters of await requestsOf(context)) {
        for (const secret of context.secretsIn(parameters)) secrets.add(secret);
        const headers = { ...(await context.callerHeaders()), ...(await cookiesOf(context)) };
        for (const value of Object.values(headers)) for (const part of secretParts(value)) secrets.add(part);
        const response = await about(JSON.stringify(parameters), () => context.send(parameters, { headers }));
        for (const part of secretParts(`${response.body.access_token}`)) secrets.add(part);
        for (const line of response.cookies)
          for (const part of secretParts(line.split(';')[0] ?? '')) secrets.add(part);
      }
      await assertNoSecretIn(context, secrets);
    },
  },
];

/** Valid requests, and requests in which one of the grant's own parameters is slightly wrong or contains the marker. */
async function requestsOf(context: GrantTestContext): Promise<Parameters[]> {
  const requests = [await context.body(), await context.body()];
  for (const name of context.ownParameters) {
    const { [name]: value = '' } = await context.body();
    if (typeof value !== 'string') continue;
    for (const wrong of [...similarTexts(value), FUZZ_MARKER, `${value}${FUZZ_MARKER}`, `${FUZZ_MARKER}${value}`])
      requests.push(await context.body({ [name]: wrong }));
  }
  return requests;
}

/** Texts of the same format, in which one digit or letter is replaced: the last, the first, or the middle one. */
export function similarTexts(text: string): string[] {
  const positions = [text.length - 1, 0, text.length >> 1].filter((at) => /[0-9a-z]/i.test(text[at] ?? ''));
  return positions.map((at) => {
    const character = text[at] as string;
    const other = /\d/.test(character) ? `${(Number(character) + 1) % 10}` : character === 'a' ? 'b' : 'a';
    return `${text.slice(0, at)}${other}${text.slice(at + 1)}`;
  });
}

/** The identity cookies of a browser, unless the kit's caller sends its own cookies. */
async function cookiesOf(context: GrantTestContext): Promise<{ cookie?: string }> {
  const { cookie } = await context.callerHeaders();
  return cookie === undefined ? { cookie: (await context.environment.newCustomer()).cookie } : {};
}

/** @throws Error if the log, the audit or the metrics have one of the secrets */
export async function assertNoSecretIn(
  { environment, output }: Pick<GrantTestContext, 'environment' | 'output'>,
  secrets: Iterable<string>,
): Promise<void> {
  const { text: metrics } = await request(`${environment.service.managementUrl}/metrics`, {});
  const names = metrics.replaceAll(/ \S+$/gm, ''); // a measured number may equal a short code
  const outputs = { log: output.text, audit: JSON.stringify(environment.service.audit), metrics: names };
  for (const [name, text] of Object.entries(outputs)) {
    const found = [...secrets].find((secret) => containsSecret(text, secret));
    if (found === undefined) continue;
    const line = text.split('\n').find((each) => containsSecret(each, found));
    throw new Error(`the ${name} discloses ${found}: ${line?.slice(0, 500)}`);
  }
}

/** The secrets of a proof are not disclosed while the service creates it. */
export const proofOutputRules: RuleSet = () => [
  {
    title: 'discloses no secret on stdout, on stderr, in the log, the audit or the metrics while a proof is created',
    async check(context) {
      const [one, other] = [await createProof(context), await createProof(context)];
      await assertNoSecretIn(context, new Set([...secretsOf(context, one, other), ...secretsOf(context, other, one)]));
    },
  },
];

/**
 * The texts of the request, and those of the service's responses. A text that another proof has too is no secret of
 * this proof. An id in a response may be public.
 */
function secretsOf(context: GrantTestContext, proof: Proof, other: Proof): string[] {
  const known = new Set([...other.responses, ...context.secretsIn(other.parameters)]);
  const texts = [...context.secretsIn(proof.parameters), ...proof.responses.filter(isPrivateText)];
  return texts.filter((text) => !known.has(text));
}
