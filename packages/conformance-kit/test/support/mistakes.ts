import type { Type } from '@nestjs/common';
import type { GrantKit, RouteKit } from '../../src/kit.js';
import { NOTES, NOTES_FORM, notes } from './notes.js';
import { PHONE, PHONE_FORM, phoneCode } from './phone-code.js';
import { pollingGrant } from './polling.grant.js';
import { signedPass } from './signed-pass.grant.js';
import { type Behavior, grantThat, sound, type TicketRequest } from './ticket.grant.js';

/** A mistake of an author, and the rule that finds it. */
type Row = [mistake: string, rule: string, failure: RegExp];

const FORGED = 'refuses a JWT';
const RACED = 'tokens to concurrent requests on two processes';
const POLLED = 'answers polls by RFC 8628';
const UPSTREAM = 'if the real system fails';
const MESSAGES = 'too many messages';
const FAILING = 'if its providers fail';
const SECRET = 'shows the secret of a message';
const HIDES = 'of its organization as to what does not exist';
const APART = 'shows and changes nothing of another';

const PASS_ROWS: Row[] = [
  ['checks no signature', FORGED, /^pass: without its signature: gets a token/],
  ['accepts unsigned passes', FORGED, /^pass: with the algorithm none: gets a token/],
  ['takes the key from the pass', FORGED, /^pass: signed with another key in its own header: gets a token/],
  ['takes the public key as a secret', FORGED, /^pass: signed by HMAC with the public key: gets a token/],
  [
    'accepts the keys of all organizations',
    'the proof of another organization',
    /gets a token; store the organization/,
  ],
  ['counts by SELECT and UPDATE', RACED, /^([4-9]|1\d|20) of 20 got a token; redeem the proof by/],
  ['counts in memory', 'none to a further request on any process', /^another process gave a further token/],
];

const POLLING_ROWS: Row[] = [
  ['never slows a poll down', POLLED, /^a poll within 5 s of the last one; store the time of the last poll/],
  ['creates a customer for a poll', POLLED, /^the first poll: an error response after a customer was created/],
  ['creates a customer in its start route', POLLED, /^a customer exists before the confirmation/],
  ['redeems a proof twice', POLLED, /^a second use: not refused with 400 invalid_grant/],
];

const VIA_UPSTREAM: Row[] = [
  ['has no time-out', UPSTREAM, /^the system does not respond; give the call a time-out.*: no response within 10 s/],
  ['lets a failed connection be a 500', UPSTREAM, /^500 if the system closes the connection/],
  ['ignores the status', UPSTREAM, /^200 if the system responds with 500/],
];

const PHONE_ROWS: Row[] = [
  ['names no grant', 'names its grant', /^add \{ grant: '…' \} to @ClientRequest/],
  [
    'limits only the network',
    MESSAGES,
    /^200 after 30 requests for the same text; take from a limit for the recipient/,
  ],
  ['creates codes with Math.random', 'Math.random()', /repeats when Math\.random\(\) repeats its numbers/],
  ['logs the code', SECRET, /^the log discloses \d{6}/],
  ['responds with the code', SECRET, /^the response has all of the message, which so proves nothing: \d{6}/],
  [
    'says whether a phone is known',
    'an unknown address the same',
    /^phone: a known address gets .*known: true\nan unk/,
  ],
  ['does not await its message', 'awaits each call', /: an error that no code catches; await each promise/],
  ['counts messages that were not sent', FAILING, /^429 after failures of the provider; call `giveBack\(\)`/],
  ['reports success although the message failed', FAILING, /^200 after a failure of the provider; let the OAuthError/],
];

const EMAIL_ROWS: Row[] = [
  ['counts each spelling', MESSAGES, /for another spelling of the domain; take from the limit/],
];

type Notes = [kind: keyof ReturnType<typeof notes>, route: string, caller: 'customer' | 'agent', ...Row];
const LIST = `GET ${NOTES}`;
const ONE = `GET ${NOTES}/{id}`;
const NOTES_ROWS: Notes[] = [
  [
    'list',
    LIST,
    'customer',
    'shows notes of a colleague',
    `${APART} caller`,
    /^shows note-\d+ of another caller of its/,
  ],
  [
    'list',
    LIST,
    'agent',
    'shows notes of everyone',
    `${APART} organization`,
    /^shows note-\d+ of another organization/,
  ],
  [
    'get',
    ONE,
    'agent',
    'shows notes of a colleague',
    HIDES,
    /^id: of another caller of its organization 200\nunknown 404/,
  ],
  ['list', LIST, 'customer', 'writes in a GET', 'changes no row', /^changes the row kit_note/],
  ['list', LIST, 'customer', 'lists all rows', 'at most 20 rows', /^26 rows; read at most 20 by LIMIT/],
  ['get', ONE, 'customer', 'fails for an odd id', 'unusual texts', /^id: "%\w*": status 500/],
  [
    ...(['delete', `DELETE ${NOTES}/{id}`, 'customer', 'deletes notes of everyone'] as const),
    ...[`${APART} caller`, /^changes a row of another caller of its organization/],
  ] as unknown as Notes,
  [
    ...(['ofCustomer', `POST ${NOTES}/of/{customer}`, 'agent', 'does not look up the customer'] as const),
    ...['refuses a customer of another', /^for another organization's customer 204\nfor no customer 204/],
  ] as unknown as Notes,
  [
    'add',
    `POST ${NOTES}`,
    'customer',
    'erases nothing',
    'no row of an erased customer',
    /^kit_note\.owner: has the id/,
  ],
  [
    'add',
    `POST ${NOTES}`,
    'customer',
    'admits agents',
    'without a bearer token',
    /^an agent's token: not refused with 401/,
  ],
];

const VALID = { ticket: '123456' };

/** A grant that does something before it does what a correct one does. */
function ticket(
  act: (...parameters: Parameters<Behavior>) => unknown,
  options: Parameters<typeof grantThat>[1] = {},
  more: Partial<GrantKit> = {},
): BrokenCase['grant'] {
  const behaves: Behavior = async (request, customers) => {
    const changed = (await act(request, customers)) as object | undefined;
    return { ...(await sound(request, customers)), ...changed };
  };
  const kit = { valid: () => VALID, forged: () => [{ ticket: '654321' }], anyOrganization: true, ...more };
  return { ...grantThat(behaves, options), ...kit };
}

const findsBrowser: Behavior = ({ body, groupId }, customers) =>
  customers.findOrCreateForBrowser(undefined, { organizationId: body.organization_id, groupId });
const inNoGroup: Behavior = ({ body }, customers) => customers.create(body.organization_id);
const needsRedirect = ({ body }: TicketRequest) => {
  if (body.redirect_uri === undefined) throw new TypeError('no redirect_uri');
};
const acceptsAll = ({ body }: TicketRequest) => Object.assign(body, VALID);
const nothingAwaited = () => void Promise.reject(new Error('a provider is away'));
const throwsLater = () => void setImmediate(() => expectNever());
const expectNever = () => {
  throw new Error('a timer');
};
const withRedirect = () => ({ ...VALID, redirect_uri: 'https://kit.example/' });

const TICKET_ROWS: [...Row, grant: BrokenCase['grant']][] = [
  ['sets no identity cookies', 'sets the identity cookies', /^call `browser\.setCookie`/, ticket(findsBrowser)],
  ['has one customer for all groups', 'each group a customer', /^status 500/, ticket(inNoGroup, { groups: true })],
  [
    ...(['relies on an optional parameter', 'optional parameters', /^without redirect_uri: status 500/] as const),
    ticket(needsRedirect, {}, { valid: withRedirect }),
  ],
  ['accepts any ticket', 'each forged proof', /^the forged proof .* gets a token; check the proof/, ticket(acceptsAll)],
  ['is not tested with forged proofs', 'declares `forged`', /^return forged proofs/, withoutForged(ticket(() => {}))],
  [
    'rejects a promise that nothing awaits',
    'valid request',
    /no code catches; await.*a provider is/,
    ticket(nothingAwaited),
  ],
  ['throws in a timer', 'valid request', /no code catches; await.*a timer/, ticket(throwsLater)],
];

function withoutForged(grant: BrokenCase['grant']): BrokenCase['grant'] {
  const { forged: _forged, ...others } = grant as { grant: Type } & GrantKit;
  return others;
}

const PERSON_ROWS: Row[] = [
  [
    'trusts the phone of the request',
    'phone or email address of another proof',
    /^phone: the address of another proof: gets a token; store the address/,
  ],
  [
    'creates a customer for each proof',
    'a person one customer',
    /^another customer for the same person; get the customer/,
  ],
];

/** A grant or a route with a mistake. */
export interface BrokenCase {
  mistake: string;
  rule: string;
  failure: RegExp;
  grant?: { grant: Type } & GrantKit;
  route?: { route: string } & RouteKit;
}

const emailForm = {
  ...PHONE_FORM,
  recipientOf: (person: number) => `person.${10_000 + person}@example.com`,
  recipient: /^[\w.@]{1,64}$/,
};
const casesOf = (rows: Row[], more: (mistake: string) => Pick<BrokenCase, 'grant' | 'route'>): BrokenCase[] =>
  rows.map(([mistake, rule, failure]) => ({ mistake, rule, failure, ...more(mistake) }));
const phoneRoute = (mistake: string, form = PHONE_FORM) => ({
  route: { route: PHONE, ...phoneCode(mistake, form).routeKit },
});

/** Each mistake, which the rule of its row finds. */
export const MISTAKES: BrokenCase[] = [
  ...TICKET_ROWS.map(([mistake, rule, failure, grant]) => ({ mistake, rule, failure, ...(grant && { grant }) })),
  ...casesOf(PERSON_ROWS, (mistake) => {
    const { grant, grantKit } = phoneCode(mistake);
    return { grant: { grant, ...grantKit } };
  }),
  ...casesOf(PASS_ROWS, (mistake) => ({ grant: signedPass(mistake) })),
  ...casesOf(POLLING_ROWS, (mistake) => ({ grant: pollingGrant(mistake) })),
  ...casesOf(VIA_UPSTREAM, (mistake) => phoneRoute(mistake, { ...PHONE_FORM, hasUpstream: true })),
  ...casesOf(PHONE_ROWS, (mistake) => phoneRoute(mistake)),
  ...casesOf(EMAIL_ROWS, (mistake) => phoneRoute(mistake, emailForm)),
  ...NOTES_ROWS.map(([kind, name, caller, mistake, rule, failure]) => {
    const form = { ...NOTES_FORM, caller, isOfOrganization: mistake === 'shows notes of everyone' };
    return { mistake, rule, failure, route: { route: name, ...notes(mistake, form)[kind] } };
  }),
];
