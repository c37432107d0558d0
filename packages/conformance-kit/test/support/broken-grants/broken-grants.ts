import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { IsDefined, IsString, Matches } from 'class-validator';
import { GrantBody, OAuthError, Optional, UUID } from 'customer-authorization-service/grant';
import { fuzzOptions } from '../../../src/fuzz/fuzz-options.js';
import { FOREIGN_ORGANIZATION, OWN_ORGANIZATION } from '../../../src/kit-registry.js';
import { badgeGrant } from '../broken-routes/badge.route.js';
import type { BrokenCase } from './broken-case.js';
import { pollingGrant } from './polling.grant.js';
import { type Behavior, grantThat, sound, TicketBody } from './ticket.grant.js';
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
const acceptAnyTicket: Behavior = (request, identities) =>
  sound({ ...request, body: { ...request.body, ticket: '123456' } }, identities);

/** Accepts each ticket once, but without atomicity: it reads, waits, and then writes. */
function once(used: Set<string>, pauseMs: number, then: Behavior = acceptAnyTicket): Behavior {
  return async (request, identities) => {
    if (used.has(request.body.ticket)) throw OAuthError.invalidGrant('used');
    await sleep(pauseMs);
    used.add(request.body.ticket);
    return then(request, identities);
  };
}

let ticket = 100_000;
const newTicket = () => ({ ticket: String(ticket++) });
const usedTickets = new Set<string>();
let winner = '';

const VOUCHER_FORM: VoucherForm = {
  alphabet: '0123456789',
  length: 6,
  hasHandle: true,
  attempts: { per: ['network'], limit: '3/600' },
  lifetimeSeconds: 300,
};

/** Grants that violate a rule by themselves. The token endpoint cannot prevent these violations. */
export const BROKEN_GRANTS: BrokenCase[] = [
  {
    description: 'omits a declared field of its response',
    ...grantThat(async (request, identities) => ({ ...(await sound(request, identities)), response: {} })),
    rule: 'gives a token for a valid request, in a response with exactly the declared fields',
    failure: /^a response with .*; declared: .*prize/,
  },
  {
    description: 'returns a number as entity_id',
    ...grantThat(async (request, identities) => ({ ...(await sound(request, identities)), entityId: 7 as never })),
    rule: 'gives a token for a valid request, in a response with exactly the declared fields',
    failure: /entity_id must be string/,
  },
  {
    description: 'returns a customer that does not exist',
    ...grantThat(async (request, identities) => ({ ...(await sound(request, identities)), entityId: 'a winner' })),
    rule: 'gives a token that this service accepts, for an existing customer',
    failure: /entity_id is no customer of the organization: a winner/,
  },
  {
    description: 'needs a parameter that its body class does not declare',
    ...grantThat(sound),
    valid: () => ({ ...VALID, color: 'red' }),
    rule: 'declares every parameter of a valid request in its body class',
    failure: /^color: sent by `valid`, not declared in TicketBody/,
  },
  {
    description: 'relies on an optional parameter',
    ...grantThat((request, identities) => {
      if (request.body.redirect_uri?.length === undefined) throw new TypeError('no redirect_uri');
      return sound(request, identities);
    }),
    valid: () => ({ ...VALID, redirect_uri: 'https://kit.example/' }),
    rule: 'responds by the protocol to a request without its optional parameters',
    failure: /^redirect_uri: status 500[\s\S]*TypeError: no redirect_uri/,
  },
  {
    description: 'has a parameter without a rule for its type',
    ...grantThat(acceptAnyTicket, taking(RulelessTicket)),
    rule: 'refuses a parameter of a wrong type, and names it',
    failure: /^ticket: has no rule for its type/,
  },
  {
    description: 'accepts texts of any length',
    ...grantThat(acceptAnyTicket, taking(AnyTicket)),
    rule: 'refuses a parameter of 10,000 characters',
    failure: /^ticket; give it a @MaxLength\(\): not refused/,
  },
  {
    description: 'throws if a parameter is the name of an object property',
    ...grantThat((request, identities) => {
      if (request.body.ticket in {}) throw new TypeError('not a function');
      return sound(request, identities);
    }, taking(AnyTicket)),
    rule: 'responds by the protocol to unusual texts in its own parameters and changes no prototype',
    failure: /^ticket: "(__proto__|constructor|\w+)": status 500[\s\S]*TypeError: not a function/,
  },
  {
    description: 'writes a parameter into a prototype',
    ...grantThat((request, identities) => {
      const known = { seen: {} } as unknown as Record<string, Record<string, string>>;
      Object.defineProperty(known[request.body.ticket] ?? {}, 'polluted', { value: 'yes', configurable: true });
      return sound(request, identities);
    }, taking(AnyTicket)),
    rule: 'responds by the protocol to unusual texts in its own parameters and changes no prototype',
    failure: /^touched: Object\.prototype\.polluted/,
    restore: () => void Reflect.deleteProperty(Object.prototype, 'polluted'),
  },
  {
    description: 'never responds to one value',
    ...grantThat(
      (request, identities) =>
        request.body.ticket === 'NaN' ? new Promise(() => undefined) : sound(request, identities),
      taking(AnyTicket),
    ),
    rule: 'responds by the protocol to unusual texts in its own parameters and changes no prototype',
    responseTimeoutMs: 3_000,
    failure: /^ticket: "NaN": no response within \d+ ms/,
  },
  {
    description: 'throws for some valid values',
    ...grantThat((request, identities) => {
      if (/[5-9]/.test(request.body.ticket)) throw new Error('not foreseen');
      return sound(request, identities);
    }),
    rule: `responds to ${fuzzOptions.requests} fuzzed requests of seed 2026 by the protocol and changes no prototype`,
    failure: /^status 500[\s\S]*FUZZ_SEED=2026 FUZZ_FIRST=\d+ FUZZ_REQUESTS=1/,
  },
  {
    description: 'throws for a client without settings in the registry',
    ...grantThat(
      async (request, identities) => {
        if (!request.client.grants.ticket) throw new TypeError('no settings');
        return sound(request, identities);
      },
      { settings: LooseSettings },
    ),
    settings: { client: { prize: 'a car' } },
    rule: 'responds by the protocol to a client without settings in the registry',
    failure: /^status 500[\s\S]*TypeError: no settings/,
  },
  {
    description: 'accepts any value of a setting',
    ...grantThat(sound, { settings: LooseSettings }),
    settings: { client: { prize: 'a car' } },
    rule: 'has a rule for each of its settings',
    failure: /^prize: accepts any value/,
  },
  {
    description: 'gives a public client a customer of another organization than the requested one',
    ...grantThat(async (request, identities) => {
      if (request.client.organizationId !== null) return sound(request, identities);
      return sound({ ...request, body: { ...request.body, organization_id: FOREIGN_ORGANIZATION } }, identities);
    }),
    rule: 'gives a public client no token of another organization than the requested one',
    failure: /^a token of the organization .*; requested: /,
  },
  {
    description: 'gives a public client a token of another organization than the one its proof was created in',
    ...voucherGrant(VOUCHER_FORM, 'ignores the organization'),
    rule: 'gives a public client no token of another organization than the requested one',
    failure: /^a token for a proof of another organization; store the organization with the proof/,
  },
  {
    description: 'gives a token for any customer in the request',
    ...grantThat(
      async (request, identities) => {
        const { entity_id: entityId } = request.body as CustomerBody;
        const granted = await sound(request, identities);
        return entityId === undefined ? granted : { ...granted, entityId };
      },
      { body: CustomerBody as typeof TicketBody },
    ),
    rule: 'responds to a customer of another organization as to a customer that does not exist',
    failure: /^entity_id is no customer of the organization/,
  },
  {
    description: 'reveals that a customer belongs to another organization',
    ...grantThat(
      async (request, identities) => {
        const { entity_id: entityId } = request.body as CustomerBody;
        if (entityId && (await identities.find(entityId, FOREIGN_ORGANIZATION)))
          throw OAuthError.unauthorizedClient('entity_id: not yours');
        if (entityId) throw OAuthError.invalidRequest('entity_id: unknown');
        return sound(request, identities);
      },
      { body: CustomerBody as typeof TicketBody },
    ),
    rule: 'responds to a customer of another organization as to a customer that does not exist',
    failure: /^entity_id: for another organization's customer [\s\S]*\nfor no customer /,
  },
  {
    description: 'lets an agent of another organization use a ticket',
    ...grantThat(
      once(new Set(), 0, async ({ agent }, identities) => {
        return { ...(await identities.create(agent?.organizationId ?? '')), response: { prize: 1 } };
      }),
      { agentScope: 'tickets:any' },
    ),
    valid: newTicket,
    rule: 'gives an agent with a client of its own organization no customer of another organization',
    failure: /^its own agent, after one of another organization tried; .*: refused instead of a token/,
  },
  {
    description: 'has one customer for all groups',
    ...grantThat(
      async ({ browser }, identities) => {
        const [, entityId = ''] = /cid=([\w-]+)/.exec(browser.cookies ?? '') ?? [];
        const customer =
          (await identities.find(entityId, OWN_ORGANIZATION)) ?? (await identities.create(OWN_ORGANIZATION));
        return { ...customer, response: { prize: 1 } };
      },
      { groups: true },
    ),
    rule: 'gives each group a customer of its own, because it declares `groups`',
    failure: /^status 500[\s\S]*find or create it in the group/,
  },
  {
    description: 'accepts a request once without singleUse',
    ...grantThat(once(new Set(), 0)),
    valid: newTicket,
    rule: 'gives a token to a repeated request, because the test does not declare `singleUse`',
    failure: /^if a request is valid only once, declare `singleUse: true` in the test/,
  },
  {
    description: 'accepts a request several times with singleUse',
    ...grantThat(sound),
    singleUse: true,
    rule: 'gives no second token to a repeated request',
    failure: /^not refused with 400 invalid_grant/,
  },
  {
    description: 'checks and stores the use of a ticket without atomicity',
    ...grantThat(once(usedTickets, 20)),
    valid: newTicket,
    singleUse: true,
    rule: 'gives one token to 20 concurrent requests, and none to a later request on another process',
    failure: /^([2-9]|1\d|20) of 20 got a token/,
  },
  {
    description: 'stores used tickets in the memory of the process',
    ...grantThat((request, identities) => perProcess(identities)(request, identities)),
    valid: newTicket,
    singleUse: true,
    rule: 'gives one token to 20 concurrent requests, and none to a later request on another process',
    failure: /^another process gave a second token/,
  },
  {
    description: 'uses up a ticket although the client gets no token',
    ...grantThat(
      once(new Set(), 0, async () => ({
        entityId: winner,
        organizationId: OWN_ORGANIZATION,
        response: { prize: 'a bicycle' },
      })),
      { body: TicketAlone as typeof TicketBody },
    ),
    valid: async ({ newCustomer }) => {
      winner = (await newCustomer()).entityId;
      return newTicket();
    },
    singleUse: true,
    rule: 'does not use up a request that it refuses',
    failure: /^refused instead of a token/,
  },
  ...[
    ['writes a ticket to the console', (text: string) => void Reflect.get(console, 'log').call(console, { text })],
    ['writes a ticket to the log', (text: string) => new Logger('Tickets').debug(`asked for ${text}`)],
    [
      'gives a ticket as the reason of an error',
      (text: string) => {
        if (text !== '123456') throw OAuthError.invalidGrant(`unknown: ${text}`);
      },
    ],
  ].map(
    ([description, leak]): BrokenCase => ({
      description: description as string,
      ...grantThat(async (request, identities) => {
        (leak as (text: string) => void)(request.body.ticket);
        return sound(request, identities);
      }),
      rule: 'discloses no secret of a request in its responses, the log, the audit or the metrics',
      failure: /^the log discloses \d{6}: /,
    }),
  ),
  {
    description: 'repeats a ticket in a hint',
    ...grantThat(async (request, identities) => {
      if (request.body.ticket !== '123456') throw OAuthError.invalidRequest(`ticket: unknown: ${request.body.ticket}`);
      return sound(request, identities);
    }),
    rule: 'discloses no secret of a request in its responses, the log, the audit or the metrics',
    failure: /an error response that discloses a secret: \d{6}/,
  },
  {
    description: 'creates a customer before it rejects the request',
    ...grantThat(async (request, identities) => {
      await identities.create(request.body.organization_id);
      return sound(request, identities);
    }),
    rule: 'discloses no secret of a request in its responses, the log, the audit or the metrics',
    failure: /an error response with the audit event identity\.created/,
  },
  {
    description: 'gives a token after the token that created the proof has ended',
    ...badgeGrant('forgets the caller'),
    rule: 'gives no token after the bearer token that created the proof has ended',
    failure: /^not refused with invalid_grant; store `descent\(\)` of the caller with the proof/,
  },
  {
    description: 'has a test that does not say that no bearer token creates the proof',
    ...grantThat(sound),
    rule: 'gives no token after the bearer token that created the proof has ended',
    failure: /^`valid` sends no bearer token to the service; .* declare `endsWithCaller: false` in the test$/,
  },
  {
    description: 'lets a client poll without a pause',
    ...pollingGrant('never slows a poll down'),
    rule: 'answers polls by RFC 8628, and gives one token to one customer after the confirmation',
    failure: /^a poll within 5 s of the last one; store the time of the last poll.*: not refused with 400 slow_down/,
  },
  {
    description: 'creates a customer before a person has confirmed the proof',
    ...pollingGrant('creates a customer for a poll'),
    rule: 'answers polls by RFC 8628, and gives one token to one customer after the confirmation',
    failure: /^the first poll: an error response with the audit event identity.created/,
  },
  {
    description: 'creates a customer in its start route, before a person has confirmed the proof',
    ...pollingGrant('creates a customer in its start route'),
    rule: 'answers polls by RFC 8628, and gives one token to one customer after the confirmation',
    failure: /^a customer exists before the confirmation; create the customer when the grant redeems/,
  },
  {
    description: 'gives a second token for a confirmed proof',
    ...pollingGrant('redeems a proof twice'),
    rule: 'answers polls by RFC 8628, and gives one token to one customer after the confirmation',
    failure: /^a second use: not refused with 400 invalid_grant/,
  },
  {
    description: 'is polled, and whose test shows no pending proof',
    ...withoutPending,
    rule: 'has a test that declares `pending`, because the grant declares `polling`',
    failure: /^pending: return/,
  },
];

const memories = new WeakMap<object, Behavior>();

/** One memory for each service, identified by its `Identities`. */
function perProcess(identities: object): Behavior {
  const known = memories.get(identities) ?? once(new Set(), 0);
  memories.set(identities, known);
  return known;
}
