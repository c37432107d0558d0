import { OAuthError } from '@customer-authorization/service/grant';
import { Limits } from '@customer-authorization/service/testing-host';
import { wrongValues } from '../guess-values.js';
import { request, type TestResponse } from '../http-client.js';
import type { RouteKit } from '../kit.js';
import { type RecordedCalls, recordCalls } from '../replaced-providers.js';
import { type SentRequest, withParameter } from '../request.js';
import type { RouteRule, RouteSubject } from '../route-subject.js';
import { ADDRESS, isLongText, textsIn } from '../secret-search.js';
import { replaceMethod, thenRestore } from '../shared-patch.js';
import type { TestService } from '../test-service.js';
import { assertNoSecretIn } from './secrets.js';

/** A route that anyone can call sends fewer messages to the same person within the window of its limit. */
const MAX_MESSAGES = 30;
const LIMIT_THEM = 'take from a limit for the recipient by `Limits.take` before the message is sent';
const OPT_OUT = 'declare unlimited: true in the test if the provider sends nothing';
const GIVE_BACK = 'call `giveBack()` of what `Limits.take` returns if the message was not sent';
const FAILED = 'let the OAuthError of the provider pass, so that the response is 503';

/** What a route without bearer tokens sends by its replaced providers. */
export function messageRules({ replace = [], callers, unlimited }: RouteKit): RouteRule[] {
  if (replace.length === 0 || callers.length > 0) return [];
  const ofLimit = unlimited ? [] : [LIMITS_MESSAGES, COUNTS_ONLY_SENT];
  return [KEEPS_SECRET, SAYS_NOTHING_OF_AN_ADDRESS, ...ofLimit];
}

/** Sends a request, and records the calls of the replaced providers. */
const sendRecorded = ({ kit, send }: RouteSubject, sent: SentRequest): Promise<RecordedCalls<TestResponse>> =>
  recordCalls(kit.replace ?? [], () => send(sent));

/** Does work with a process whose limits are on, except those of networks: an attacker has many. */
function withLimitsOfRecipients<Result>(subject: RouteSubject, work: (service: TestService) => Promise<Result>) {
  return subject.withLimits((service) => {
    const limits = service.application.get(Limits, { strict: false });
    const uncounted = { giveBack: () => undefined };
    return thenRestore([replaceMethod(limits, 'takeForNetwork', () => () => uncounted)], () => work(service));
  });
}

const LIMITS_MESSAGES: RouteRule = {
  title: 'refuses repeated requests with 429 before it sends too many messages to the same recipient',
  check: (subject) =>
    withLimitsOfRecipients(subject, async ({ url }) => {
      const sent = { ...(await subject.create()), url };
      const first = await sendRecorded(subject, sent);
      if (first.calls.length === 0) return;
      let last = first;
      for (let count = 1; count < MAX_MESSAGES && last.result.status < 300; count++)
        last = await sendRecorded(subject, sent);
      if (last.result.status !== 429)
        throw new Error(
          `${last.result.status} after ${MAX_MESSAGES} requests for the same text; ${LIMIT_THEM}; ${OPT_OUT}`,
        );
      const isSent = ({ calls }: { calls: string[] }) => first.calls.every((call) => calls.includes(call));
      const refused = await sendRecorded(subject, sent);
      if (isSent(refused)) throw new Error(`calls ${refused.calls} for a request that it refuses; ${LIMIT_THEM}`);
    }),
};

const COUNTS_ONLY_SENT: RouteRule = {
  title: 'responds with 503 if its providers fail, and counts no message that was not sent',
  check: (subject) =>
    withLimitsOfRecipients(subject, async ({ url }) => {
      const sent = { ...(await subject.create()), url };
      const fail = () => Promise.reject(OAuthError.unavailable(new Error('a failure of the conformance kit')));
      const init = { method: sent.method, headers: sent.headers, body: JSON.stringify(sent.body) };
      for (let count = 0; count < MAX_MESSAGES; count++) {
        const work = () => request(`${url}${sent.path}`, init);
        const { result, calls } = await recordCalls(subject.kit.replace ?? [], work, fail);
        if (result.status === 429) throw new Error(`429 after failures of the provider; ${GIVE_BACK}`);
        if (calls.length === 0) return;
        if (result.status !== 503) throw new Error(`${result.status} after a failure of the provider; ${FAILED}`);
      }
    }),
};

const KEEPS_SECRET: RouteRule = {
  title: 'shows the secret of a message neither in its response nor in the log',
  async check(subject) {
    const [one, other] = [await subject.create(), await subject.create()];
    const [first, second] = [await sendRecorded(subject, one), await sendRecorded(subject, other)];
    const ofOther = wordsIn(second.texts);
    const words = wordsIn(first.texts).filter((word) => !ofOther.includes(word) && !JSON.stringify(one).includes(word));
    const shown = wordsIn(textsIn(first.result.body));
    if (words.length > 0 && words.every((word) => shown.includes(word)))
      throw new Error(`the response has all of the message, which so proves nothing: ${words}; respond without it`);
    await assertNoSecretIn(
      subject,
      words.filter((word) => isLongText(word) && !shown.includes(word)),
    );
  },
};

const wordsIn = (texts: string[]): string[] =>
  texts.flatMap((text) => text.split(/[^\w-]+/)).filter((word) => word !== '');

const SAYS_NOTHING_OF_AN_ADDRESS: RouteRule = {
  title: 'gives an unknown address the same response as a known one',
  async check(subject) {
    const [sent, other] = [await subject.create(), await subject.create()];
    const names = subject.ownParameters.filter((name) => typeof other.body?.[name] === 'string');
    const [name = ''] = names;
    const [person = '', ...domain] = `${other.body?.[name]}`.split('@');
    // a text next to the address may name what the address must fit
    if (names.length !== 1 || !ADDRESS.test([person, ...domain].join('@'))) return;
    const [unknown] = wrongValues(undefined, { person }, 'person', 500).slice(-1);
    const ofKnown = formOf(await subject.send(sent));
    const ofUnknown = formOf(await subject.send(withParameter(other, name, [unknown, ...domain].join('@'))));
    if (ofKnown === ofUnknown) return;
    const solution = 'respond alike, and send nothing to an unknown address';
    throw new Error(`${name}: a known address gets ${ofKnown}\nan unknown address gets ${ofUnknown}\n${solution}`);
  },
};

/** The status, the error, and the fields with their types. Other values may be random. */
function formOf({ status, body }: TestResponse): string {
  const fields = Object.entries(status < 400 && body ? body : {}).map(
    ([name, value]) => `${name}: ${typeof value === 'boolean' || value === null ? value : typeof value}`,
  );
  return [status, body?.error, body?.error_hint, ...fields].filter((each) => each !== undefined).join(', ');
}
