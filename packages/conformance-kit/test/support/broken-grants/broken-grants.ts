import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { IsDefined, IsString, Matches } from 'class-validator';
import { GrantBody, OAuthError, Optional, UUID, writeStatement } from 'customer-authorization-service/grant';
import { type Columns, CreateTables } from '../../../../../src/migrations/schema.js';
import type { TestEnvironment } from '../../../src/grant-kit.js';
import { FOREIGN_ORGANIZATION, OWN_ORGANIZATION } from '../../../src/kit-registry.js';
import { badgeGrant } from '../broken-routes/badge.route.js';
import { grantOf } from '../grant-of.js';
import { addressGrant } from './address.grant.js';
import type { BrokenCase } from './broken-case.js';
import { pollingGrant } from './polling.grant.js';
import { type Behavior, grantThat, sound, TicketBody, type TicketRequest } from './ticket.grant.js';
import { type VoucherForm, voucherGrant } from './voucher.grant.js';

/** Accepts any text as a ticket. */
class AnyTicket extends GrantBody {
  @Matches(UUID)
  override organization_id!: string;

  @IsString()
  ticket!: string;
}

class RulelessTicket extends GrantBody {
  @Matches(UUID)
  override organization_id!: string;

  @IsDefined()
  ticket!: string;
}

/** Has no rule for `organization_id`. */
class TicketAlone extends GrantBody {
  @Matches(/^\d{6}$/)
  ticket!: string;
}

/** `entity_id` may name any customer. */
class CustomerBody extends TicketBody {
  @Optional()
  @Matches(UUID)
  entity_id?: string;
}

class LooseSettings {
  @IsDefined()
  prize: unknown;
}

const { pending: _pending, ...withoutPending } = pollingGrant();
const VALID = { ticket: '123456' };
const taking = (body: object) => ({ body: body as typeof TicketBody });
const acceptAnyTicket: Behavior = (request, customers) =>
  sound({ ...request, body: { ...request.body, ticket: '123456' } }, customers);

/** Accepts each ticket once, but without atomicity: it reads, waits, and then writes. */
function once(used: Set<string>, pauseMs: number, then: Behavior = acceptAnyTicket): Behavior {
  return async (request, customers) => {
    if (used.has(request.body.ticket)) throw OAuthError.invalidGrant('used');
    await sleep(pauseMs);
    used.add(request.body.ticket);
    return then(request, customers);
  };
}

/** Accepts each ticket once, in the memory of all processes. */
const onceInMemory = (pauseMs: number) => grantThat(once(new Set(), pauseMs));

let ticket = 100_000;
const newTicket = () => ({ ticket: String(ticket++) });
let winner = '';

const VOUCHER_FORM: VoucherForm = {
  alphabet: '0123456789',
  length: 6,
  hasHandle: true,
  boundToClient: true,
  attempts: { per: ['network'], limit: '3/600' },
  lifetimeSeconds: 300,
};

type Row = [
  description: string,
  rule: string,
  failure: RegExp,
  grant: Omit<BrokenCase, 'description' | 'rule' | 'failure'>,
];

/** A grant that changes the result of a correct one. */
const returning = (changed: object) =>
  grantThat(async (request, customers) => ({ ...(await sound(request, customers)), ...changed }));

/** A grant that does something before it does what a correct one does. */
const first = (act: (...parameters: Parameters<Behavior>) => unknown, options = {}) =>
  grantThat(async (request, customers) => {
    await act(request, customers);
    return sound(request, customers);
  }, options);

/** A grant that fails for some requests. */
const failing = (isFailure: (request: TicketRequest) => boolean, message: string, options = {}) =>
  first((request) => {
    if (isFailure(request)) throw new TypeError(message);
  }, options);

const leaking = (leak: (text: string) => void) => first(({ body }) => leak(body.ticket));
const refusingWith = (error: (text: string) => OAuthError) =>
  leaking((text) => {
    if (text !== '123456') throw error(`ticket: unknown: ${text}`);
  });

const polluting = first(({ body }) => {
  const known = { seen: {} } as unknown as Record<string, Record<string, string>>;
  Object.defineProperty(known[body.ticket] ?? {}, 'polluted', { value: 'yes', configurable: true });
}, taking(AnyTicket));

const ofForeignOrganization = grantThat(async (request, customers) => {
  if (request.client.organizationId !== null) return sound(request, customers);
  return sound({ ...request, body: { ...request.body, organization_id: FOREIGN_ORGANIZATION } }, customers);
});

const ofAnyCustomer = grantThat(async (request, customers) => {
  const { entity_id: entityId } = request.body as CustomerBody;
  const granted = await sound(request, customers);
  return entityId === undefined ? granted : { ...granted, entityId };
}, taking(CustomerBody));

const revealingCustomers = first(async ({ body }, customers) => {
  const { entity_id: entityId } = body as CustomerBody;
  if (entityId && (await customers.find(entityId, FOREIGN_ORGANIZATION)))
    throw OAuthError.unauthorizedClient('entity_id: not yours');
  if (entityId) throw OAuthError.invalidRequest('entity_id: unknown');
}, taking(CustomerBody));

const agentGrant = grantThat(
  once(new Set(), 0, async ({ agent }, customers) => {
    return { ...(await customers.create(agent?.organizationId ?? '')), response: { prize: 1 } };
  }),
  { agentScope: 'tickets:any' },
);

const ofAnyAgent = { ...agentGrant, valid: newTicket };

const ofAllGroups = grantThat(
  async ({ browser }, customers) => {
    const [, entityId = ''] = /cid=([\w-]+)/.exec(browser.cookies ?? '') ?? [];
    const customer = (await customers.find(entityId, OWN_ORGANIZATION)) ?? (await customers.create(OWN_ORGANIZATION));
    return { ...customer, response: { prize: 1 } };
  },
  { groups: true },
);

const usingUp = grantThat(
  once(new Set(), 0, async () => {
    return { entityId: winner, organizationId: OWN_ORGANIZATION, response: { prize: 'a bicycle' } };
  }),
  taking(TicketAlone),
);

const relyingOnRedirect = {
  ...failing(({ body }) => body.redirect_uri?.length === undefined, 'no redirect_uri'),
  valid: () => ({ ...VALID, redirect_uri: 'https://kit.example/' }),
};
const notAwaited = first(() => void Promise.reject(new Error('a provider is away')));
const throwingLater = first(async () => {
  setImmediate(() => {
    throw new Error('a timer');
  });
});
const catching = grantThat((request, customers) =>
  sound(request, customers).catch(() => Promise.reject(OAuthError.invalidGrant('any error'))),
);
const ruleless = grantThat(acceptAnyTicket, taking(RulelessTicket));
const endless = grantThat(acceptAnyTicket, taking(AnyTicket));
const confusing = failing(({ body }) => body.ticket in {}, 'not a function', taking(AnyTicket));
const pollutingUntilRestored = {
  ...polluting,
  restore: () => void Reflect.deleteProperty(Object.prototype, 'polluted'),
};
const silent = {
  ...first(({ body }) => (body.ticket === 'NaN' ? new Promise(() => undefined) : undefined), taking(AnyTicket)),
  responseTimeoutMs: 3_000,
};
const capricious = failing(({ body }) => /[5-9]/.test(body.ticket), 'not foreseen');
const settings = { client: { prize: 'a car' } };
const withoutSettings = failing(({ client }) => !client.grants.ticket, 'no settings', { settings: LooseSettings });
const forPublicClients = voucherGrant(VOUCHER_FORM, 'ignores the organization');
const forAnyClient = voucherGrant({ ...VOUCHER_FORM, boundToClient: false }, 'ignores the organization');
const singleUse = { valid: newTicket, singleUse: true };
const inMemory = grantThat((request, customers) => perProcess(customers)(request, customers));
const usedUp = {
  ...usingUp,
  ...singleUse,
  valid: async ({ newCustomer }: TestEnvironment) => {
    winner = (await newCustomer()).entityId;
    return newTicket();
  },
};
const printing = leaking((text) => Reflect.get(console, 'log').call(console, { text }));
const logging = leaking((text) => new Logger('Tickets').debug(`asked for ${text}`));
const creatingFirst = first(({ body }, customers) => customers.create(body.organization_id));

const { again: _again, ...withoutAgain } = addressGrant();
const withShortWindow = voucherGrant({ ...VOUCHER_FORM, attempts: { per: ['network'], limit: '3/10' } });
class StoredBody extends GrantBody {
  @Matches(UUID)
  override organization_id!: string;

  @Matches(/^[\w.@]{1,64}$/)
  email!: string;
}

/** A table of texts of at most 40 characters. */
class Stored1795700000000 extends CreateTables {
  protected readonly tables = (its: Columns) => [{ name: 'kit_stored', columns: [its.key('email', 40)] }];
}

const STORE = writeStatement<[email: string]>(
  ({ insertIgnore }) => `${insertIgnore} INTO kit_stored (email) VALUES (?)`,
);

const storingLongTexts = {
  ...grantOf<StoredBody>('kit_stored', { body: StoredBody }, async ({ body }, customers, { database }) => {
    await database.execute(STORE, [body.email]);
    return customers.create(body.organization_id);
  }),
  migrations: [Stored1795700000000],
  valid: () => ({ email: 'person.10000@example.com' }),
};
const withoutCookies = grantThat(async ({ body, groupId }, customers) => {
  const customer = await customers.findOrCreateForBrowser(undefined, {
    organizationId: body.organization_id,
    groupId,
  });
  return { ...customer, response: { prize: 'a bicycle' } };
});

const FIELDS = 'exactly the declared fields';
const OPTIONAL = 'without its optional parameters';
const STRANGE = 'to unusual texts';
const TWICE = '20 concurrent requests';
const OWN_ORGANIZATION_ONLY = 'gives no token of another organization';
const FOREIGN = 'to a customer of another organization';
const ENDED = 'after the bearer token that created';
const DISCLOSES = 'no secret of a request in its';
const POLLED = 'answers polls by RFC 8628';
const LOGGED = /^the log discloses \d{6}: /;
const NO_REDIRECT = /^redirect_uri: status 500[\s\S]*TypeError: no redirect_uri/;
const ANY_LENGTH = /^ticket: its rules accept 10000 characters; give it a @MaxLength\(\)/;
const NO_FUNCTION = /^ticket: "(__proto__|constructor|\w+)": status 500[\s\S]*TypeError: not a function/;
const REPEAT = /^status 500[\s\S]*FUZZ_SEED=2026 FUZZ_FIRST=\d+ FUZZ_REQUESTS=1/;
const IN_GROUP = /^status 500[\s\S]*find or create it in the group/;
const NO_CUSTOMER = /status 500[\s\S]*entityId is no customer of the organization of the result/;
const NOT_REQUESTED = /^status 500[\s\S]*a customer of another organization than the requested one/;
const NOT_AWAITED = /^the grant ticket: an error that no code catches; .*: Error: a provider is away/;
const IN_TIMER = /^the grant ticket: an error that no code catches; .*: Error: a timer/;
const NOT_ATOMIC = /^([2-9]|1\d|20) of 20 got a token; redeem the proof by one UPDATE/;
const HINTED = /error response that discloses a secret: \d{6}/;
const CREATED = /an error response with the audit event identity\.created/;
const FIRST_POLL = /^the first poll: an error response with the audit event identity\.created/;
const NO_BEARER = /^`valid` sends no bearer token to the service; .* declare `endsWithCaller: false` in the test$/;
const NO_PAUSE =
  /^a poll within 5 s of the last one; store the time of the last poll.*: not refused with 400 slow_down/;
const TOO_EARLY = /^a customer exists before the confirmation; create the customer when the grant redeems/;
const ONCE = /^if a request is valid only once, declare `singleUse: true` in the test/;
const OTHER_AGENT = /^its own agent, after one of another organization tried; .*: refused instead of a token/;
const REVEALED = /^entity_id: for another organization's customer [\s\S]*\nfor no customer /;
const NO_PROOF = /^not refused with invalid_grant; store the id of `proof\(\)` of the caller/;
const AGAIN_DECLARED = /^email: declare `again`, which returns another proof for the same address, or `again: false`/;
const NOT_SAME = /^another customer for the same person; store the `entity_id` with the HMAC/;
const ERASED = /^after the erasure of its customer; delete the stored `entity_id` in `onErase`.*: refused instead of/;
const TOO_LONG = /^email, .*; give it the @MaxLength\(\) of its column: kit_stored\.email: has a text of 64 characters/;
const HASHED = /^kit_address\.address: has the hash of a short text, which trying all values reverses; .* by HMAC/;
const NO_COOKIES = /^call `browser\.setCookie` for each of `IdentityCookies\.setCookieLines`/;
const WINDOW =
  /^code: `attempts` admits 90 guesses in its lifetime of 300 s; choose a window of at least this lifetime/;
const ELSEWHERE = /^a token for a proof of another organization; store the organization with the proof/;

const ROWS: Row[] = [
  ['omits a declared field', FIELDS, /^a response with .*; declared: .*prize/, returning({ response: {} })],
  ['returns a number as entity_id', FIELDS, NO_CUSTOMER, returning({ entityId: 7 })],
  ['returns no customer', FIELDS, NO_CUSTOMER, returning({ entityId: 'winner' })],
  ['returns another organization', FIELDS, NOT_REQUESTED, returning({ organizationId: FOREIGN_ORGANIZATION })],
  ['rejects a promise that nothing awaits', FIELDS, NOT_AWAITED, notAwaited],
  ['throws in a timer', FIELDS, IN_TIMER, throwingLater],
  ['relies on an optional parameter', OPTIONAL, NO_REDIRECT, relyingOnRedirect],
  ['calls each proof invalid in an outage', 'is unavailable', /^let each error of `Database` pass/, catching],
  ['has a parameter without a rule', 'of a wrong type', /^ticket: has no rule for/, ruleless],
  ['accepts texts of any length', 'of 10,000 characters', ANY_LENGTH, endless],
  ['throws if a parameter is the name of an object property', STRANGE, NO_FUNCTION, confusing],
  ['writes a parameter into a prototype', STRANGE, /^touched: Object\.prototype\.polluted/, pollutingUntilRestored],
  ['stores longer texts than its table', 'than its columns', TOO_LONG, storingLongTexts],
  ['never responds to one value', STRANGE, /^ticket: "NaN": no response within \d+ ms/, silent],
  ['throws for some valid values', 'fuzzed requests of seed 2026', REPEAT, capricious],
  [
    'throws for a client without settings',
    'a client without settings',
    /^status 500[\s\S]*TypeError: no settings/,
    { ...withoutSettings, settings },
  ],
  [
    'accepts any value of a setting',
    'a rule for each of its settings',
    /^prize: accepts any value/,
    { ...grantThat(sound, { settings: LooseSettings }), settings },
  ],
  ['gives a public client a foreign customer', OWN_ORGANIZATION_ONLY, NOT_REQUESTED, ofForeignOrganization],
  ['gives a public client a token elsewhere', OWN_ORGANIZATION_ONLY, ELSEWHERE, forPublicClients],
  ['gives a client of another organization a token elsewhere', OWN_ORGANIZATION_ONLY, ELSEWHERE, forAnyClient],
  ['gives a token for any customer', FOREIGN, NO_CUSTOMER, ofAnyCustomer],
  ['reveals that a customer is of another organization', FOREIGN, REVEALED, revealingCustomers],
  ['lets a foreign agent use a ticket', 'an agent with a client of its own', OTHER_AGENT, ofAnyAgent],
  ['has one customer for all groups', 'each group a customer', IN_GROUP, ofAllGroups],
  ['accepts a request once', 'to a repeated request, because', ONCE, { ...onceInMemory(0), valid: newTicket }],
  [
    'accepts a request several times with singleUse',
    'no second token to a repeated request',
    /^redeem the proof by one UPDATE .*: not refused with 400 invalid_grant/,
    { ...grantThat(sound), singleUse: true },
  ],
  ['checks and stores a use without atomicity', TWICE, NOT_ATOMIC, { ...onceInMemory(20), ...singleUse }],
  [
    'stores used tickets in the memory of the process',
    TWICE,
    /^another process gave a second token/,
    { ...inMemory, ...singleUse },
  ],
  [
    'uses up a ticket although the client gets no token',
    'does not use up a request',
    /^refused instead of a token/,
    usedUp,
  ],
  ['writes a ticket to the console', DISCLOSES, LOGGED, printing],
  ['writes a ticket to the log', DISCLOSES, LOGGED, logging],
  ['gives a ticket as a reason', DISCLOSES, LOGGED, refusingWith(OAuthError.invalidGrant)],
  ['repeats a ticket in a hint', DISCLOSES, HINTED, refusingWith(OAuthError.invalidRequest)],
  ['creates a customer before it rejects the request', DISCLOSES, CREATED, creatingFirst],
  ['gives a token after the caller has ended', ENDED, NO_PROOF, badgeGrant('forgets the caller')],
  ['has a test without `endsWithCaller`', ENDED, NO_BEARER, grantThat(sound)],
  ['lets a client poll without a pause', POLLED, NO_PAUSE, pollingGrant('never slows a poll down')],
  ['creates a customer before the confirmation', POLLED, FIRST_POLL, pollingGrant('creates a customer for a poll')],
  ['creates a customer in its start route', POLLED, TOO_EARLY, pollingGrant('creates a customer in its start route')],
  [
    'redeems a confirmed proof twice',
    POLLED,
    /^a second use: not refused with 400/,
    pollingGrant('redeems a proof twice'),
  ],
  ['creates a customer for each proof', 'of one customer', NOT_SAME, addressGrant('creates a customer for each proof')],
  ['keeps the id of an erased customer', 'of one customer', ERASED, addressGrant('keeps the id of an erased customer')],
  ['stores a hash of the address alone', 'in plain text', HASHED, addressGrant('stores a hash of the address alone')],
  ['takes an address, and has a test without `again`', 'declares `again`', AGAIN_DECLARED, withoutAgain],
  ['sets no identity cookies', 'sets the identity cookies', NO_COOKIES, withoutCookies],
  ['admits guesses in each of many windows', 'for the lifetime of a short proof', WINDOW, withShortWindow],
  ['is polled, and whose test shows no pending proof', 'declares `pending`', /^pending: return/, withoutPending],
];

/** Grants that violate a rule by themselves. The token endpoint cannot prevent these violations. */
export const BROKEN_GRANTS: BrokenCase[] = ROWS.map(([description, rule, failure, grant]) => ({
  ...grant,
  description,
  rule,
  failure,
}));

const memories = new WeakMap<object, Behavior>();

/** One memory for each service, identified by its `CustomerService`. */
function perProcess(customers: object): Behavior {
  const known = memories.get(customers) ?? once(new Set(), 0);
  memories.set(customers, known);
  return known;
}
