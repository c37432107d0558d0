import { FOREIGN_SITE, SITE } from '../../../src/kit-registry.js';
import { UNKNOWN_CLIENT } from '../../../src/routes/client-rules.js';
import type { RouteKit } from '../../../src/routes/route-kit.js';
import type { Interception } from '../broken-grants/broken-case.js';
import { APPROVE, approvalRoute } from './approval.route.js';
import { BADGE, badgeRoute } from './badge.route.js';
import { LINK, linkRoute } from './link.route.js';
import { MAIL, mailRoute } from './mail.route.js';
import { CLAIM, CONTACTS, claimRoute, contactsRoute, VISIT, visitRoute } from './organization.routes.js';

/** A route that violates one rule, by itself or because the service is broken, and the expected report of the kit. */
type BrokenRoute = [
  description: string,
  name: string,
  kit: RouteKit,
  /** A part of the title of the rule. */
  rule: string,
  failure: RegExp,
  interception?: Interception,
];

const { guessable: _guessable, ...withoutGuessable } = approvalRoute();
const { actsOn: _actsOn, ...withoutActsOn } = visitRoute();
const { redeem: _redeem, ...withoutRedeem } = badgeRoute();
const { resends: _resends, ...withoutResends } = mailRoute();

function withFirstBadge(): RouteKit {
  const first: string[] = [];
  const redeem: RouteKit['redeem'] = (_request, { body }) => {
    first.push(body.badge);
    return { grant_type: 'kit_badge', badge: first[0] };
  };
  return { ...badgeRoute(), redeem };
}

/** Changes the text of each request between the kit and the service. */
const sending = (change: (text: string) => string): Interception => ({
  request: (sent) => {
    sent.body = change(sent.body);
  },
});
const withWildcard: Interception = {
  response: ({ headers }) => {
    if (!headers.has('access-control-allow-origin')) headers.set('access-control-allow-origin', '*');
  },
};

const SHORT = 'short enough to guess';
const UNLISTED = 'may not use the grant';
const OTHERS = 'what belongs to another organization';
const KEPT_APART = 'shows and changes nothing';
const NOT_STORED = 'no guessable value in plain text';
const RESENDS = 'after 3 requests';
const ENDS = 'after the bearer token of its caller';

/** Rows for routes that have a mistake by this name. */
const having = (
  name: string,
  route: (mistake: string) => RouteKit,
  rows: [mistake: string, rule: string, failure: RegExp][],
) => rows.map(([mistake, rule, failure]): BrokenRoute => [mistake, name, route(mistake), rule, failure]);

/** Rows for a correct route in a broken service. */
const served = (
  name: string,
  kit: RouteKit,
  rows: [description: string, rule: string, failure: RegExp, interception: Interception][],
) => rows.map(([description, ...row]): BrokenRoute => [`is in a service that ${description}`, name, kit, ...row]);

const asSite = (clientId: string) => sending((text) => text.replace(clientId, SITE));

const REFUSED_AGAIN = /^one request more; take from a limit for this text by `Limits.take`.*: not refused with 429/;
const CALLS_FIRST = /^calls Mailer\.send for a request that it refuses with 429; take from a limit for this text/;
const TELLS =
  /^email: a known address gets 200, .*known: true\nan unknown address gets 200, .*known: false\nrespond alike/;
const FAILS_LATER = /^email: 64 characters lead to 500 in the grant; limit them in the body/;
const SPELLING =
  /^email: calls Mailer\.send for another spelling of the domain; take from the limit for the address in lower/;
const AWAITS = 'awaits each call of the providers';
const NOT_AWAITED =
  /^the route POST .*kit_mail: an error that no code catches; await each promise.*\n? *[\s\S]*OAuthError/;
const FOREIGN_CODE = /^(code|claim): of another organization 200\nunknown 400 invalid_request \w+: unknown\nlook it up/;
const FOREIGN_CUSTOMER = /^for another organization's customer 200\nfor no customer 200\n.*CustomerService\.find/;
const SAME_BADGE = /^redeem: returns the same parameters for two requests; take them from the request or its response/;
const NO_GRANT = /^declares no grant; add \{ grant: '…' \} to @ClientRequest/;
const NO_REDEEM = /^redeem: return the parameters of the token request, or declare `redeem: false`/;
const NO_RESENDS = /^email: declare how many requests for the same text succeed as `resends: …`/;
const NO_ACTS_ON = /^actsOn: declare 'own organization', \{ customer: … \}/;
const NO_GUESSABLE =
  /^code: at most 20 bits; limit the guesses by `Limits`; then declare guessable: \{ parameter: 'code'/;

const rejecting: RouteKit = {
  ...approvalRoute(),
  actsOn: 'all organizations',
  valid: () => ({ body: { code: '000000' } }),
};

/**
 * Each rule that only routes have has a case here; broken-grants.ts has those of the rules that grants share. In the
 * nightly tests, only this rule may detect the mistake.
 */
export const BROKEN_ROUTES: BrokenRoute[] = [
  ...served(APPROVE, approvalRoute(), [
    ['admits every origin', 'registered origins', /^https:\/\/evil\.example: has Access-Control-Allow/, withWildcard],
    ['reads bodies of any size', 'more than 16 KiB', /^not refused with 413/, sending((text) => text.trim())],
  ]),
  ...served(LINK, linkRoute(), [
    ['knows every client', 'an unknown client', /^not refused with 400 hint/, asSite(UNKNOWN_CLIENT)],
    ['admits every client', 'does not admit', /^not refused with 400/, asSite(FOREIGN_SITE)],
  ]),
  ...having(APPROVE, approvalRoute, [
    ['is described without its body', 'is in the OpenAPI document', /^not in the OpenAPI document: code/],
    ['compares no Origin', 'refuses an Origin', /^https:\/\/evil\.example: not refused with 400/],
    ['admits any bearer', 'without a bearer token', /^an agent's token: not refused with 401/],
    ['admits any organization', OTHERS, FOREIGN_CODE],
    ['logs the code', 'discloses no secret', /^the log discloses \d{6}/],
    ['counts no guesses', 'after 3 wrong guesses', /^code: the right value succeeds after 3 wrong guesses/],
    ['stores the code in plain text', NOT_STORED, /^kit_approval\.code: has a proof in plain text; store its sha256/],
    ['stores a hash of the code alone', NOT_STORED, /^kit_approval\.code: has the hash of a short text, which trying/],
    ['creates the code with Math.random', 'Math.random()', /^code: repeats when Math\.random\(\) repeats its numbers/],
  ]),
  ...having(CLAIM, claimRoute, [['admits any organization', OTHERS, FOREIGN_CODE]]),
  ...having(VISIT, visitRoute, [
    ['shows the visitors of all organizations', KEPT_APART, /^shows visitor-\d+ of another organization; look it up/],
  ]),
  ...having(CONTACTS, contactsRoute, [
    ['lists all organizations', KEPT_APART, /^shows contact\.\d+@example\.com of another organization; look it up/],
  ]),
  ...having(LINK, linkRoute, [
    ['requires no scope', 'without its scope', /^not refused with 403/],
    ['does not look up the customer', 'refuses a customer of another', FOREIGN_CUSTOMER],
    ['names no grant', UNLISTED, NO_GRANT],
    ['takes from no limit', 'takes from each limit', /^kit_links: no request takes from this limit/],
  ]),
  ...having(MAIL, mailRoute, [
    ['sends a second message that nothing awaits', AWAITS, NOT_AWAITED],
    ['limits only the network', RESENDS, REFUSED_AGAIN],
    ['sends before it takes from the limit', RESENDS, CALLS_FIRST],
    ['names no grant', UNLISTED, NO_GRANT],
    ['says whether an address is known', 'an unknown address', TELLS],
    ['fails in the grant for a long address', 'longest texts', FAILS_LATER],
    ['counts each spelling of an address', RESENDS, SPELLING],
    [
      'reports success although the mailer fails',
      'of `replace` fail',
      /^200 after a failure of the provider; let the OAuth/,
    ],
    [
      'uses up the limit although the mailer fails',
      'of `replace` fail',
      /^429 after failures of the provider; call `give/,
    ],
    ['responds with the code', 'a message proves', /^the response has all that the grant needs, so the message proves/],
    ['logs the code of a message', 'a message proves', /^the log discloses \d{6}: .*sent \d{6}/],
    ['names its lifetime in milliseconds', 'in seconds', /^expires_in: 600000, but the proof is valid for 600 s/],
  ]),
  ...having(BADGE, badgeRoute, [
    ['forgets the caller', ENDS, /^not refused with invalid_grant; store the id of `proof\(\)`/],
  ]),
  ['rejects a valid request', APPROVE, rejecting, 'to a valid request with success', /^refused: 400/],
  ['is tested by the badge of another request', BADGE, withFirstBadge(), ENDS, SAME_BADGE],
  ['is tested without `guessable`', APPROVE, withoutGuessable, SHORT, NO_GUESSABLE],
  ['is tested without `actsOn`', VISIT, withoutActsOn, 'declares `actsOn`', NO_ACTS_ON],
  ['is tested without `resends`', MAIL, withoutResends, 'declares `resends`', NO_RESENDS],
  ['is tested without `redeem`', BADGE, withoutRedeem, 'declares `redeem`', NO_REDEEM],
];
