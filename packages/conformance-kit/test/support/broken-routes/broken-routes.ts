import { FOREIGN_SITE, SITE } from '../../../src/kit-registry.js';
import { UNKNOWN_CLIENT } from '../../../src/routes/client-rules.js';
import type { RouteKit } from '../../../src/routes/route-kit.js';
import type { InterceptedRequest, Interception } from '../broken-grants/broken-case.js';
import { APPROVE, approvalRoute } from './approval.route.js';
import { BADGE, badgeRoute } from './badge.route.js';
import { CLAIM, claimRoute } from './claim.route.js';
import { CONTACTS, contactsRoute } from './contacts.route.js';
import { CUSTOMER_LINK, customerLinkRoute } from './customer-link.route.js';
import { LINK, linkRoute } from './link.route.js';
import { MAIL, mailRoute } from './mail.route.js';
import { VISIT, visitRoute } from './visit.route.js';

/** A route that violates one rule, by itself or because the service is broken, and the expected report of the kit. */
interface BrokenRoute {
  description: string;
  name: string;
  kit: RouteKit;
  interception?: Interception;
  rule: string;
  failure: RegExp;
}

const { guessable: _guessable, ...withoutGuessable } = approvalRoute();
const { actsOn: _actsOn, ...withoutActsOn } = visitRoute();
const { redeem: _redeem, ...withoutRedeem } = badgeRoute();
const { resends: _resends, ...withoutResends } = mailRoute();
const approve = { name: APPROVE, kit: approvalRoute() };
const link = { name: LINK, kit: linkRoute() };

function withFirstBadge(): RouteKit {
  const first: string[] = [];
  const redeem: RouteKit['redeem'] = (_request, { body }) => {
    first.push(body.badge);
    return { grant_type: 'kit_badge', badge: first[0] };
  };
  return { ...badgeRoute(), redeem };
}

/** Replaces a text in bodies between the kit and the service. */
const replacing = (text: string, other: string): Interception => ({
  request: (sent: InterceptedRequest) => {
    sent.body = sent.body.replace(text, other);
  },
});

/** Only the named rule detects the violation. Each rule for routes has a case. */
export const BROKEN_ROUTES: BrokenRoute[] = [
  {
    description: 'rejects a valid request',
    name: APPROVE,
    kit: { ...approvalRoute(), actsOn: 'all organizations', valid: () => ({ body: { code: '000000' } }) },
    rule: 'responds to a valid request with success, as the OpenAPI document describes',
    failure: /^refused: 400/,
  },
  {
    description: 'is described without its body',
    name: APPROVE,
    kit: approvalRoute('is described without its body'),
    rule: 'is in the OpenAPI document of the public port, with its parameters',
    failure: /^not in the OpenAPI document: code/,
  },
  {
    description: 'is in a service that does not name the allowed methods',
    ...approve,
    interception: { response: ({ headers }) => headers.delete('allow') },
    rule: 'responds with 405 and Allow to another method',
    failure: /Allow/i,
  },
  {
    description: 'is in a service that admits every origin',
    ...approve,
    interception: {
      response: ({ headers }) => {
        if (!headers.has('access-control-allow-origin')) headers.set('access-control-allow-origin', '*');
      },
    },
    rule: 'admits only registered origins to a preflight request and to the response',
    failure: /^https:\/\/evil\.example: has Access-Control-Allow-Origin/,
  },
  {
    description: 'is in a service that reads bodies of any size',
    ...approve,
    interception: {
      request: (sent) => {
        sent.body = sent.body.trim();
      },
    },
    rule: 'refuses a body that is no JSON object, or has more than 16 KiB',
    failure: /^not refused with 413/,
  },
  {
    description: 'is in a service that fills in missing parameters',
    ...approve,
    interception: {
      request: (sent) => {
        if (sent.body === '{}') sent.body = '{"code":"000000"}';
      },
    },
    rule: 'refuses a request without a required parameter, and names it',
    failure: /^code: not refused with 400 hint \^code: required/,
  },
  {
    description: 'is in a service that reads the last one of repeated parameters',
    ...approve,
    interception: {
      request: (sent) => {
        if (sent.body.includes('"code":"text"')) sent.body = JSON.stringify(JSON.parse(sent.body));
      },
    },
    rule: 'refuses a repeated parameter',
    failure: /^code: not refused with 400 hint/,
  },
  {
    description: 'has no rule for a parameter',
    name: APPROVE,
    kit: approvalRoute('has no rule for a parameter'),
    rule: 'refuses a parameter of a wrong type, an empty and a huge one, and names it',
    failure: /^code: has no rule for its type/,
  },
  {
    description: 'throws for an unusual text',
    name: APPROVE,
    kit: approvalRoute('throws for an unusual text'),
    rule: 'responds by the protocol to unusual texts in its parameters',
    failure: /^code: .*: status 500/,
  },
  {
    description: 'has a guard that does not compare the Origin',
    name: APPROVE,
    kit: approvalRoute('compares no Origin'),
    rule: "refuses an Origin that is not one of the client's",
    failure: /^https:\/\/evil\.example: not refused with 400/,
  },
  {
    description: 'is in a service that takes an unknown client for another one',
    ...link,
    interception: replacing(UNKNOWN_CLIENT, SITE),
    rule: 'refuses an unknown client',
    failure: /^not refused with 400 hint/,
  },
  {
    description: 'is in a service whose organizations admit every client',
    ...link,
    interception: replacing(FOREIGN_SITE, SITE),
    rule: 'refuses a client that the organization of the request does not admit',
    failure: /^not refused with 400/,
  },
  {
    description: 'admits any bearer',
    name: APPROVE,
    kit: approvalRoute('admits any bearer'),
    rule: 'responds with 401 to a request without a bearer token of its kind of caller',
    failure: /^an agent's token: not refused with 401/,
  },
  {
    description: 'is in a service that does not end tokens',
    ...approve,
    interception: {
      everyMethod: true,
      request: (sent) => {
        if (sent.path.endsWith('/token') && sent.body === 'undefined') delete sent.headers.authorization;
      },
    },
    rule: 'responds with 401 to a bearer token that has ended or expired',
    failure: /^an ended token: not refused with 401/,
  },
  {
    description: 'requires no scope of an agent',
    name: LINK,
    kit: linkRoute('requires no scope'),
    rule: 'responds with 403 to an agent without its scope',
    failure: /^not refused with 403/,
  },
  {
    description: 'admits any organization',
    name: APPROVE,
    kit: approvalRoute('admits any organization'),
    rule: 'responds to what belongs to another organization as to what does not exist',
    failure: /^code: of another organization 200\nunknown 400 invalid_request code: unknown\nlook it up/,
  },
  {
    description: 'takes no bearer token and admits any organization',
    name: CLAIM,
    kit: claimRoute('admits any organization'),
    rule: 'responds to what belongs to another organization as to what does not exist',
    failure: /^claim: of another organization 200\nunknown 400 invalid_request claim: unknown\nlook it up/,
  },
  {
    description: 'shows the visitors of all organizations',
    name: VISIT,
    kit: visitRoute('shows the visitors of all organizations'),
    rule: 'shows and changes nothing of another organization',
    failure: /^shows visitor-\d+ of another organization; look it up/,
  },
  {
    description: 'lists what the requests of no caller contain, for all organizations',
    name: CONTACTS,
    kit: contactsRoute('lists all organizations'),
    rule: 'shows and changes nothing of another organization',
    failure: /^shows contact\.\d+@example\.com of another organization; look it up/,
  },
  {
    description: 'has a test that does not say for whom it acts',
    name: VISIT,
    kit: withoutActsOn,
    rule: 'has a test that declares `actsOn`, because the route takes a bearer token',
    failure: /^actsOn: declare 'own organization', \{ customer: … \}/,
  },
  {
    description: 'creates a link for any customer id',
    name: CUSTOMER_LINK,
    kit: customerLinkRoute('does not look up the customer'),
    rule: 'refuses a customer of another organization as a customer that does not exist',
    failure: /^for another organization's customer 200\nfor no customer 200\n.*Identities\.find/,
  },
  {
    description: 'declares a limit and does not take from it',
    name: CUSTOMER_LINK,
    kit: customerLinkRoute('takes from no limit'),
    rule: 'takes from each limit of its extension, except those in `otherLimits` of the test',
    failure: /^kit_links: no request takes from this limit/,
  },
  {
    description: 'logs the code',
    name: APPROVE,
    kit: approvalRoute('logs the code'),
    rule: 'discloses no secret of a request or response on stdout, in its errors, the log, the audit or the metrics',
    failure: /^the log discloses \d{6}/,
  },
  {
    description: 'has a short secret, if the test does not declare `guessable`',
    name: APPROVE,
    kit: withoutGuessable,
    rule: 'has no parameter that is short enough to guess, because the test does not declare `guessable`',
    failure: /^code: at most 20 bits; limit the guesses by `Limits`; then declare guessable: \{ parameter: 'code'/,
  },
  {
    description: 'counts no guesses',
    name: APPROVE,
    kit: approvalRoute('counts no guesses'),
    rule: 'refuses a right request after 3 wrong guesses, because the test declares `guessable`',
    failure: /^code: the right value succeeds after 3 wrong guesses/,
  },
  {
    description: 'stores its code in plain text',
    name: APPROVE,
    kit: approvalRoute('stores the code in plain text'),
    rule: 'stores no guessable value in plain text, and no hash of it alone',
    failure: /^kit_approval\.code: has a proof in plain text; store its sha256/,
  },
  {
    description: 'stores a hash of its code alone',
    name: APPROVE,
    kit: approvalRoute('stores a hash of the code alone'),
    rule: 'stores no guessable value in plain text, and no hash of it alone',
    failure: /^kit_approval\.code: has the hash of a short proof, which trying all values reverses/,
  },
  {
    description: 'creates its code with Math.random',
    name: APPROVE,
    kit: approvalRoute('creates the code with Math.random'),
    rule: 'does not create a guessable value with Math.random()',
    failure: /^code: repeats when Math\.random\(\) repeats its numbers/,
  },
  {
    description: 'sends any number of mails to one address',
    name: MAIL,
    kit: mailRoute('limits only the network'),
    rule: 'refuses a repeated request with 429 after 3 requests, because the test declares `resends`',
    failure: /^one request more; take from a limit for this text by `Limits.take`.*: not refused with 429/,
  },
  {
    description: 'sends mails, and has a test that does not say how many',
    name: MAIL,
    kit: withoutResends,
    rule: 'has a test that declares `resends`, if the caller names a text in a request without a bearer token',
    failure: /^email: declare how many requests for the same text succeed as `resends: …`/,
  },
  {
    description: 'gives a badge that outlives the token of its caller',
    name: BADGE,
    kit: badgeRoute('forgets the caller'),
    rule: 'creates nothing that gives a token after the bearer token of its caller has ended',
    failure: /^not refused with invalid_grant; store `descent\(\)` of the caller/,
  },
  {
    description: 'has a test that redeems the badge of another request',
    name: BADGE,
    kit: withFirstBadge(),
    rule: 'creates nothing that gives a token after the bearer token of its caller has ended',
    failure: /^redeem: returns the same parameters for two requests; take them from the request or its response/,
  },
  {
    description: 'has a test that does not say which grant redeems its badge',
    name: BADGE,
    kit: withoutRedeem,
    rule: 'has a test that declares `redeem`, because the route takes a bearer token and the extension has a grant',
    failure: /^redeem: return the parameters of the token request, or declare `redeem: false`/,
  },
];
