import { Limits } from 'customer-authorization-service/testing-host';
import { isAccepted, wrongValue } from '../guess-values.js';
import type { TestResponse } from '../http-client.js';
import { recordCalls } from '../replaced-providers.js';
import { ADDRESS } from '../secret-search.js';
import { type Method, replaceMethod, thenRestore } from '../shared-patch.js';
import { rowsWith } from '../stored-cells.js';
import type { Parameters } from '../token-request.js';
import { parametersOf, type SentRequest, withText } from './request-texts.js';
import type { RouteKit } from './route-kit.js';
import type { RouteRule, RouteTestContext } from './route-test-context.js';

/** A route takes from the limits of its extension. No other rule detects a limit that has no effect. */
export function routeLimitRules({ limits = {}, otherLimits = [] }: RouteKit): RouteRule[] {
  const names = Object.keys(limits).filter((name) => !otherLimits.includes(name));
  return names.length > 0 ? [takesFrom(names)] : [];
}

function takesFrom(names: string[]): RouteRule {
  return {
    title: 'takes from each limit of its extension, except those in `otherLimits` of the test',
    async check(context) {
      const taken = await limitsTakenDuring(context, () => sendRightAndWrong(context));
      const untaken = names.filter((name) => !taken.has(name));
      if (untaken.length === 0) return;
      const solution = 'call `Limits.take` or `takeForNetwork` before the work';
      const optOut = 'if only another route or grant takes from the limit, list it in `otherLimits` of the test';
      throw new Error(`${untaken.join(', ')}: no request takes from this limit; ${solution}; ${optOut}`);
    },
  };
}

/** Some limits count valid requests, and others only wrong ones. */
async function sendRightAndWrong(context: RouteTestContext): Promise<void> {
  const sent = await context.valid();
  for (const [name, value] of Object.entries(typeof sent.body === 'object' ? sent.body : {}))
    if (typeof value === 'string')
      await context.send({ ...sent, body: { ...(sent.body as object), [name]: wrongValue(value, 0) } });
  await context.send(await context.valid());
}

/** The names of the limits that are taken from. The limits of the service under test are off, and count no request. */
async function limitsTakenDuring({ environment }: RouteTestContext, work: () => Promise<void>): Promise<Set<unknown>> {
  const limits = environment.service.application.get(Limits, { strict: false });
  const taken = new Set<unknown>();
  const recording =
    (take: Method): Method =>
    (...parameters) => {
      taken.add(parameters[0]);
      return take(...parameters);
    };
  await thenRestore(
    [replaceMethod(limits, 'take', recording), replaceMethod(limits, 'takeForNetwork', recording)],
    work,
  );
  return taken;
}

const ONE_SPELLING = 'take from the limit for the address in lower case';
const LIMIT_THEM = 'take from a limit for this text by `Limits.take` before the message is sent';

/** A route without bearer tokens sends a limited number of messages to the same person, and says nothing about it. */
export function routeResendRules({ callers, resends }: RouteKit): RouteRule[] {
  if (typeof resends === 'number')
    return [limitsResends(resends), ...(callers.length === 0 ? [SAYS_NOTHING_OF_AN_ADDRESS] : [])];
  return callers.length === 0 && resends === undefined ? [DECLARES_RESENDS] : [];
}

const DECLARES_RESENDS: RouteRule = {
  title: 'has a test that declares `resends`, if the caller names a text in a request without a bearer token',
  async check(context) {
    const named = textsOfCaller(context, parametersOf(await context.valid()));
    if (named.length === 0) return;
    const declaration = 'declare how many requests for the same text succeed as `resends: …`';
    throw new Error(`${named}: ${declaration}, or \`resends: false\` if the route sends nothing to it`);
  },
};

/** The names of the texts that a caller chooses, except the one that it could guess. */
function textsOfCaller({ ownParameters, kit: { guessable } }: RouteTestContext, parameters: Parameters): string[] {
  const guessed = guessable ? guessable.parameter : undefined;
  return ownParameters.filter((name) => name !== guessed && typeof parameters[name] === 'string');
}

function limitsResends(count: number): RouteRule {
  return {
    title: `refuses a repeated request with 429 after ${count} requests, because the test declares \`resends\``,
    check: (context) =>
      context.withLimits(async ({ url }) => {
        const sent = { ...(await context.valid()), url };
        const first = await workOf(context, sent);
        if (first.response.status >= 300) throw new Error(`refused: ${first.response.text}`);
        let last = first;
        let countsInTable = true;
        // a table may count a message that `valid` has sent, too
        for (let number = 2; number <= count + 1 && last.response.status < 300; number++) {
          countsInTable &&= last.changesRows;
          last = await workOf(context, sent);
        }
        const { status, text } = last.response;
        if (status !== 429)
          throw new Error(`one request more; ${LIMIT_THEM}: not refused with 429\nresponse: ${status} ${text}`);
        // a provider may send the message of an earlier request late, but then not twice
        const isSent = ({ calls }: { calls: string[] }) =>
          first.calls.length > 0 && first.calls.every((call) => calls.includes(call));
        const refused = await workOf(context, sent);
        if (isSent(refused) && (refused.changesRows || !countsInTable))
          throw new Error(`calls ${refused.calls} for a request that it refuses with 429; ${LIMIT_THEM}`);
        for (const [name, text] of otherSpellings(parametersOf(sent))) {
          const other = await workOf(context, withText(sent, name, text));
          if (other.response.status < 300 && isSent(other))
            throw new Error(`${name}: calls ${other.calls} for another spelling of the domain; ${ONE_SPELLING}`);
        }
      }),
  };
}

/** The parameters that are email addresses, with their domain in the other case, in which it is the same domain. */
function otherSpellings(parameters: Parameters): [name: string, text: string][] {
  return Object.entries(parameters).flatMap(([name, text]): [string, string][] => {
    const [, person, domain] = /^([^@\s]+@)([\w-]+\.[\w.-]*[a-z]{2,})$/.exec(`${text}`) ?? [];
    return domain === undefined ? [] : [[name, `${person}${domain.toUpperCase()}`]];
  });
}

/** What a request causes: calls of replaced providers, such as a gateway, and changes of rows. */
async function workOf(context: RouteTestContext, sent: SentRequest) {
  const rows = () => rowsWith(context.environment.service, ['']);
  const before = await rows();
  const { result: response, calls } = await recordCalls(context.kit.replace ?? [], () => context.send(sent));
  return { response, calls, changesRows: `${await rows()}` !== `${before}` };
}

const SAYS_NOTHING_OF_AN_ADDRESS: RouteRule = {
  title: 'gives an unknown address the same response as a known one',
  async check(context) {
    const [sent, other] = [await context.valid(), await context.valid()];
    const names = textsOfCaller(context, parametersOf(sent));
    const [name = ''] = names;
    const address = `${parametersOf(other)[name]}`;
    // a text next to the address may name what the address must fit
    if (names.length !== 1 || !ADDRESS.test(address)) return;
    const unknown = unknownAddress(context, parametersOf(other), name);
    if (unknown === undefined) return;
    const ofKnown = formOf(await context.send(sent));
    const ofUnknown = formOf(await context.send(withText(other, name, unknown)));
    if (ofKnown === ofUnknown) return;
    const solution = 'respond alike, and send nothing to an unknown address';
    throw new Error(`${name}: a known address gets ${ofKnown}\nan unknown address gets ${ofUnknown}\n${solution}`);
  },
};

/** An address with the same domain, which no request of the test has. */
function unknownAddress({ bodySchema, issued }: RouteTestContext, parameters: Parameters, name: string) {
  const [person = '', ...domain] = `${parameters[name]}`.split('@');
  const known = new Set(issued.map((each) => each[name]));
  const candidates = Array.from({ length: 1_000 }, (_, index) => [wrongValue(person, index), ...domain].join('@'));
  const accepts = (value: string) => bodySchema && isAccepted(bodySchema.body, { ...parameters, [name]: value });
  return candidates.find((each) => !known.has(each) && accepts(each));
}

/** The status, the error, and the fields with their types. Other values may be random. */
function formOf({ status, body }: TestResponse): string {
  const fields = Object.entries(status < 400 && body ? body : {}).map(
    ([name, value]) => `${name}: ${typeof value === 'boolean' || value === null ? value : typeof value}`,
  );
  return [status, body?.error, body?.error_hint, ...fields].filter((each) => each !== undefined).join(', ');
}
