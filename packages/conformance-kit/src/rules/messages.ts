import { UUID } from '@customer-authorization/service/grant';
import { Limits } from '@customer-authorization/service/testing-host';
import { wrongValues } from '../guess-values.js';
import type { TestResponse } from '../http-client.js';
import type { RouteKit } from '../kit.js';
import { replaceMethod, thenRestore } from '../replace-method.js';
import { type SentRequest, withParameter } from '../request.js';
import type { RouteRule, RouteSubject } from '../route-subject.js';
import { ADDRESS, isLongText, textsIn } from '../secret-search.js';
import type { TestService } from '../test-service.js';
import type { UpstreamServer } from '../upstream.js';
import { assertNoSecretIn } from './secrets.js';

/** A route that anyone can call sends fewer messages to the same person within the window of its limit. */
const MAX_MESSAGES = 30;
const LIMIT_THEM = 'take from a limit for the recipient by `Limits.take` before the message is sent';
const OPT_OUT = 'declare unlimited: true in the test if the system sends nothing';
const GIVE_BACK = 'call `giveBack()` of what `Limits.take` returns if the message was not sent';

/** What a route without bearer tokens lets another system send. */
export function messageRules({ upstream, callers, unlimited }: RouteKit): RouteRule[] {
  if (!upstream || callers.length > 0) return [];
  const ofLimit = unlimited ? [] : [LIMITS_MESSAGES, COUNTS_ONLY_SENT];
  return [KEEPS_SECRET, SAYS_NOTHING_OF_AN_ADDRESS, ...ofLimit];
}

const systemOf = ({ upstream }: RouteSubject): UpstreamServer => upstream as UpstreamServer;

/** Sends a request, and records what the other system receives meanwhile. */
const sendRecorded = (subject: RouteSubject, sent: SentRequest) => systemOf(subject).during(() => subject.send(sent));

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
      if (first.received.length === 0) return;
      let last = first;
      for (let count = 1; count < MAX_MESSAGES && last.result.status < 300; count++)
        last = await sendRecorded(subject, sent);
      if (last.result.status !== 429)
        throw new Error(
          `${last.result.status} after ${MAX_MESSAGES} requests for the same text; ${LIMIT_THEM}; ${OPT_OUT}`,
        );
      const refused = await sendRecorded(subject, sent);
      if (refused.received.length >= first.received.length)
        throw new Error(`calls the system for a request that it refuses; ${LIMIT_THEM}`);
    }),
};

const COUNTS_ONLY_SENT: RouteRule = {
  title: 'counts no message that was not sent, because the system failed',
  check: (subject) =>
    withLimitsOfRecipients(subject, async ({ url }) => {
      const sent = { ...(await subject.create()), url };
      for (let count = 0; count < MAX_MESSAGES; count++) {
        const { result, received } = await systemOf(subject).during(() => subject.exchange(sent), 'responds with 500');
        if (result.status === 429) throw new Error(`429 after failures of the system; ${GIVE_BACK}`);
        if (received.length === 0) return;
      }
    }),
};

const KEEPS_SECRET: RouteRule = {
  title: 'shows the secret of a message neither in its response nor in the log',
  async check(subject) {
    const [one, other] = [await subject.create(), await subject.create()];
    const [first, second] = [await sendRecorded(subject, one), await sendRecorded(subject, other)];
    const known = [...wordsIn(second.received), ...wordsIn([JSON.stringify(one)])];
    const words = wordsIn(first.received).filter((word) => !known.includes(word) && !UUID.test(word));
    const shown = wordsIn(textsIn(first.result.body));
    if (words.length > 0 && words.every((word) => shown.includes(word)))
      throw new Error(`the response has all of the message, which so proves nothing: ${words}; respond without it`);
    await assertNoSecretIn(
      subject,
      words.filter((word) => isLongText(word) && !shown.includes(word)),
    );
  },
};

/** The words of texts. In a URL or a form, an escape such as `%20` separates words. */
const wordsIn = (texts: string[]): string[] =>
  texts.flatMap((text) => text.split(/(?:%[\dA-F]{2}|[^\w-])+/)).filter((word) => word !== '');

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
