import { setTimeout as sleep } from 'node:timers/promises';
import { OAuthError } from 'customer-authorization-service/grant';
import { type GrantMetadata, schemaOf } from 'customer-authorization-service/testing-host';
import { isAccepted } from '../guess-values.js';
import { request } from '../http-client.js';
import { grantsOf, OWN_ORGANIZATION, SITE } from '../kit-registry.js';
import { recordCalls } from '../replaced-providers.js';
import { type BodySchema, longestText, required, textsOf } from '../rules/body-schema.js';
import { assertNoSecretIn } from '../rules/secrets.js';
import { isLongText, ownParameters, textsIn } from '../secret-search.js';
import type { Parameters } from '../token-request.js';
import { redeem } from './ended-caller-rules.js';
import { parametersOf, type SentRequest, withText } from './request-texts.js';
import type { RouteKit, RouteRequest } from './route-kit.js';
import type { RouteRule, RouteTestContext } from './route-test-context.js';

/** What a route sends by replaced providers, and what a grant of the extension makes of it. */
export function routeMessageRules({ callers, replace = [], resends, ...kit }: RouteKit): RouteRule[] {
  const sends = typeof resends === 'number' && replace.length > 0;
  const hasGrant = grantsOf(kit).length > 0;
  return [
    ...(hasGrant ? [IN_SECONDS, REDEEMS_LONGEST] : []),
    ...(sends ? [failsWithProviders(resends)] : []),
    ...(sends && hasGrant && callers.length === 0 ? [KEEPS_SECRET] : []),
  ];
}

/** Sends a request. Returns the texts of its response, and the words of its messages that the request does not have. */
async function accept(context: RouteTestContext, sent: SentRequest) {
  const { result: response, texts } = await recordCalls(context.kit.replace ?? [], () => context.send(sent));
  const known = JSON.stringify(sent);
  const words = texts.flatMap((text) => text.split(/[^\w-]+/)).filter((word) => word && !known.includes(word));
  return { sent, response, shown: textsIn(response.body), words };
}

/** More would use up the guesses that a grant admits. */
const MAX_REQUEST_COUNT = 3;

/** Redeems what a request has created, as a client could that has read some texts. Resolves to the first token or 5xx. */
async function redeemed(
  context: RouteTestContext,
  { sent, response, shown, words }: Awaited<ReturnType<typeof accept>>,
  texts = [...shown, ...words],
): Promise<{ status: number; parameters: Parameters } | undefined> {
  if (response.status >= 300) return undefined;
  const { kit, environment } = context;
  const requests = kit.redeem
    ? [(await kit.redeem(sent as RouteRequest, response, environment)) as Parameters]
    : grantsOf(kit).flatMap((grant) => tokenRequests(grant, parametersOf(sent), texts));
  for (const parameters of requests.slice(0, MAX_REQUEST_COUNT)) {
    const { status } = await redeem(context, parameters);
    if (status === 200 || status >= 500) return { status, parameters };
  }
  return undefined;
}

/** The token requests that the body of a grant accepts, with the parameters of a request and some texts. */
function tokenRequests({ name: grant_type, body }: GrantMetadata, own: Parameters, texts: string[]): Parameters[] {
  const common = { organization_id: OWN_ORGANIZATION, ...own, client_id: SITE, grant_type };
  const names = required({ schema: schemaOf(body), body }).filter((name) => !(name in common));
  let requests: Parameters[] = names.length > 2 ? [] : [common];
  for (const name of names) requests = requests.flatMap((each) => texts.map((text) => ({ ...each, [name]: text })));
  return requests.filter((each) => isAccepted(body, each));
}

/** A shorter lifetime is in seconds. */
const MIN_LIFETIME_MS = 1_000;

const IN_SECONDS: RouteRule = {
  title: 'responds with an `expires_in` in seconds',
  async check(context) {
    const { clock } = context.environment.service;
    const { expires_in: lifetime } = (await context.send(await context.valid())).body ?? {};
    if (typeof lifetime !== 'number' || lifetime < MIN_LIFETIME_MS) return;
    const isValidAfter = (seconds: number) =>
      clock.whileStopped(async () => {
        const accepted = await accept(context, await context.valid());
        clock.advance({ seconds });
        return (await redeemed(context, accepted))?.status === 200;
      });
    if (await isValidAfter(lifetime * 0.9)) return;
    // `expires_in` may be that of something else, unless the proof is valid for exactly so many milliseconds
    if (!(await isValidAfter((lifetime / 1_000) * 0.9)) || (await isValidAfter(lifetime / 1_000 + 1))) return;
    throw new Error(`expires_in: ${lifetime}, but the proof is valid for ${lifetime / 1_000} s; respond in seconds`);
  },
};

const REDEEMS_LONGEST: RouteRule = {
  title: 'creates nothing of the longest texts that its rules accept for which the grant responds with 5xx',
  async check(context) {
    const { bodySchema } = context;
    for (const name of bodySchema ? textsOf(bodySchema, context.ownParameters) : []) {
      const sent = await context.valid();
      const text = longestText((bodySchema as BodySchema).body, parametersOf(sent), name);
      const token = await redeemed(context, await accept(context, withText(sent, name, text)));
      if (token && token.status >= 500)
        throw new Error(
          `${name}: ${text.length} characters lead to ${token.status} in the grant; limit them in the body`,
        );
    }
  },
};

const PROVES_NOTHING = 'the response has all that the grant needs, so the message proves nothing; respond without it';

const KEEPS_SECRET: RouteRule = {
  title: 'shows what a message proves neither in its response nor in the log',
  async check(context) {
    const first = await accept(context, await context.valid());
    const { status, parameters = {} } = (await redeemed(context, first, first.shown)) ?? {};
    const body = grantsOf(context.kit).find(({ name }) => name === parameters.grant_type)?.body;
    const values = body ? ownParameters(body).flatMap((name) => parameters[name] ?? []) : [];
    // a single parameter may be a voucher, which the response shows and the message repeats
    if (status === 200 && values.length > 1 && first.words.some((word) => values.includes(word)))
      throw new Error(PROVES_NOTHING);
    const second = await accept(context, await context.valid());
    const used = Object.values((await redeemed(context, second))?.parameters ?? {});
    await assertNoSecretIn(
      context,
      second.words.filter((word) => used.includes(word) && isLongText(word)),
    );
  },
};

/** Long enough that a route that does not wait for the provider has responded, also on a busy machine. */
const FIRST_FAILURE_MS = 2_000;
const FAILED = 'let the OAuthError of the provider pass, so that the response is 503';
const GIVE_BACK = 'call `giveBack()` of what `Limits.take` returns if the message was not sent';

function failsWithProviders(resends: number): RouteRule {
  return {
    title: 'responds with 503 if the providers of `replace` fail, and counts no message that was not sent',
    check: (context) =>
      context.withLimits(async ({ url }) => {
        const sent = { ...(await context.valid()), url };
        const statuses: number[] = [];
        for (let count = 0; count <= resends; count++) {
          const status = await statusWithoutProviders(context.kit, sent, count === 0 ? FIRST_FAILURE_MS : 0);
          if (status === undefined) return;
          statuses.push(status);
        }
        if (statuses[0] !== 503) throw new Error(`${statuses[0]} after a failure of the provider; ${FAILED}`);
        statuses.push((await context.send(sent)).status);
        if (statuses.includes(429)) throw new Error(`429 after failures of the provider; ${GIVE_BACK}`);
      }),
  };
}

/** The status while each provider fails; `undefined` if the route calls none, or does not wait for them. */
async function statusWithoutProviders(
  { replace = [] }: RouteKit,
  sent: SentRequest,
  afterMs: number,
): Promise<number | undefined> {
  let failures = 0;
  const fail = async () => {
    await sleep(afterMs);
    failures++;
    throw OAuthError.unavailable(new Error('a failure of the conformance kit'));
  };
  const init = { method: 'POST', headers: sent.headers, body: JSON.stringify(sent.body) };
  const { result } = await recordCalls(replace, () => request(`${sent.url}${sent.path}`, init), fail);
  return failures > 0 || result.status === 429 ? result.status : undefined;
}
