import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Actor, RevocableClaims, SessionClaims } from '../access-token/session-claims.js';
import { type CustomerRow, Customers } from '../customer/customers.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock, DAY_MS } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { sqlFlag, timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, type NotNull, selectStatement, writeStatement } from '../platform/database/statement.js';
import { sha256 } from '../platform/secret.js';
import { UUID } from '../platform/uuid.js';
import { Registry } from '../registry/registry.js';
import { AGENT_COLUMNS, AGENT_JOIN, type AgentColumns, actOf, agentHasEnded } from '../session/agent/agent-columns.js';
import { type AgentCaller, AgentSessions } from '../session/agent/agent-sessions.js';
import type { Session } from '../session/session.entity.js';
import { SessionBounds } from '../session/session-bounds.js';
import { agentOf, type SessionOrigin, Sessions } from '../session/sessions.js';

/** Protocol §10.7. */
const MAX_AGE_MS = DAY_MS;
/** In a proof that an agent made for no certain customer. */
const NO_CUSTOMER = '';

const COLUMNS = ['id', 'customer_id', 'client_id', 'epoch', 'redeemable_until'] as const;

/** A proof that is not redeemed yet ends with the access tokens of the session that made it. */
const CALLER_ENDED = 'session.redeemed_at IS NULL AND parent.epoch > session.parent_epoch';

interface ProofRow extends NotNull<EntityRow<Session, (typeof COLUMNS)[number]>>, AgentColumns {
  agent_organization_id: string | null;
  caller_ended: number;
}

const FIND = selectStatement<[id: string], ProofRow>({
  columns: [
    ...COLUMNS.map((column) => `session.${column}`),
    ...[...AGENT_COLUMNS, 'agent_session.organization_id AS agent_organization_id'],
    `${sqlFlag(CALLER_ENDED)} AS caller_ended`,
  ],
  from: `session LEFT JOIN session AS parent ON parent.id = session.parent_id ${AGENT_JOIN}
    WHERE session.id = ? AND session.kind = 'proof'`,
  batch: true,
});

type Redemption = [
  customerId: string,
  agentSessionId: string | null,
  agentEpoch: number | null,
  endOfToken: Date,
  endOfToken: Date,
  id: string,
  customerId: string,
  now: Date,
  agentSessionId: string | null,
];

/**
 * Matches no row if an ending has deleted the proof, or if a parallel request has redeemed it for another customer or
 * agent. The session lasts as long as the access token, so that something can be made with the token.
 */
const REDEEM = writeStatement<Redemption>(
  ({ now }) => `UPDATE session SET customer_id = ?, redeemed_at = ${now}, agent_session_id = ?, agent_epoch = ?,
      expires_at = CASE WHEN expires_at < ? THEN ? ELSE expires_at END
    WHERE id = ? AND kind = 'proof' AND customer_id IN ('${NO_CUSTOMER}', ?) AND redeemable_until > ?
      AND (agent_session_id IS NULL OR agent_session_id = ?)`,
);

const ERRORS = {
  ended: () => OAuthError.invalidGrant('proof: unknown, or ended with what created it'),
  expired: () => OAuthError.invalidGrant('proof: expired'),
  otherAgent: () => OAuthError.invalidGrant('proof: of another session of an agent than the caller'),
  otherCustomer: () => OAuthError.invalidGrant('proof: of another customer or organization'),
  otherRedemption: () => OAuthError.invalidGrant('proof: ended, or redeemed for another customer or agent meanwhile'),
  customerEnded: () => OAuthError.invalidGrant('proof: the customer is gone, or its sessions have ended'),
};

/** An agent's customer, as `CustomerService` returned it. */
export interface ProofCustomer {
  entityId: string;
  generation: number;
}

/** The customer that a grant returns for a proof. */
export interface RedeemedFor extends Partial<ProofCustomer> {
  entityId: string;
  organizationId: string;
}

/** What a redeemed proof gives. */
export interface RedeemedProof {
  session: SessionClaims;
  /** Empty if the customer belongs to no group. */
  groupId: string;
  /** Whether the customer is a user of the organization. */
  hasUser: boolean;
}

/**
 * The sessions of the proofs of extensions (decision 0036). A caller makes one in a route, and a grant redeems it. The
 * extension stores a random text. The id of the session is a hash of it, so the claim `sid` is of no use in its place.
 */
@Injectable()
export class Proofs {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly customers: Customers,
    private readonly sessions: Sessions,
    private readonly agentSessions: AgentSessions,
    private readonly bounds: SessionBounds,
    private readonly registry: Registry,
  ) {}

  /**
   * Makes a proof of a customer with its token.
   *
   * @throws OAuthError `invalid_token` if the token has ended; `invalid_grant` if its session has expired, or the chain is
   * too long; 429 if the customer has too many sessions
   */
  ofCustomer(claims: RevocableClaims & { exp: number }): Promise<string> {
    return this.sessions.beginForCustomer(claims, async (manager, all, origin) => {
      await this.bounds.assertMayProve(manager, all);
      return this.insertIn(manager, { ...origin, clientId: claims.client_id }, origin.expiresAt);
    });
  }

  /**
   * Makes a proof of an agent for a customer, or for the customer of the first redemption.
   *
   * @throws OAuthError `invalid_token` if the token has ended; `invalid_grant` if the sessions of the customer have ended;
   * 429 if the customer has too many
   */
  async ofAgent(agent: AgentCaller, customer?: ProofCustomer): Promise<string> {
    const { aud, client_id } = agent.claims;
    const clientId = aud === undefined ? null : client_id; // the registry has no client of a trusted issuer
    if (!customer) {
      const origin = { customerId: NO_CUSTOMER, depth: 1, ...agentOf(await this.agentSessions.actorFor(agent)) };
      return this.database.transaction((manager) => this.insertIn(manager, { ...origin, clientId }));
    }
    const proof = await this.sessions.beginForAgent(agent, customer, async (manager, all, origin) => {
      await this.bounds.assertMayProve(manager, all);
      return this.insertIn(manager, { ...origin, clientId });
    });
    if (proof === undefined) throw ERRORS.customerEnded();
    return proof;
  }

  /**
   * Redeems a proof. All access tokens that it is redeemed for are of one session.
   *
   * @param agent that redeems it
   * @param ttlSeconds the lifetime of the access token
   * @throws OAuthError `invalid_grant`; 429 at the first redemption of a proof without a customer, if the customer has too
   * many sessions
   */
  async redeem(
    proof: string,
    granted: RedeemedFor,
    agent: Actor | undefined,
    ttlSeconds: number,
  ): Promise<RedeemedProof> {
    const row = await this.find(proof);
    if (!row || agentHasEnded(row) || row.caller_ended !== 0 || this.registry.endedReason({ client_id: row.client_id }))
      throw ERRORS.ended();
    if (timeOf(row.redeemable_until) <= this.clock.now()) throw ERRORS.expired();
    const { act = agent } = actOf(row);
    if (agent && act?.sid !== agent.sid) throw ERRORS.otherAgent();
    const customer = await this.customerOf(row, granted);
    const { entity_id: entityId, group_id: groupId } = customer;
    const isOpen = row.customer_id === NO_CUSTOMER;
    const generation = (isOpen ? granted.generation : undefined) ?? Number(customer.generation);
    const values = this.redemptionOf(row, entityId, act, ttlSeconds);
    const redeemed = isOpen
      ? await this.customers.withLock({ entityId, generation }, async (manager) => {
          await this.bounds.assertMayProve(manager, await this.sessions.allOf(manager, entityId));
          return writeIn(manager, REDEEM, values);
        })
      : await this.database.execute(REDEEM, values);
    if (redeemed === undefined) throw ERRORS.customerEnded();
    if (redeemed === 0) throw ERRORS.otherRedemption();
    const session = { gen: generation, sid: row.id, ep: row.epoch, ...(act && { act }) };
    return { session, groupId, hasUser: Boolean(customer.has_user) };
  }

  private async find(proof: string): Promise<ProofRow | undefined> {
    // a grant in JavaScript may return another value
    if (typeof proof !== 'string' || !UUID.test(proof)) return undefined;
    return (await this.database.select(FIND, [sha256(proof)]))[0];
  }

  /** @throws OAuthError `invalid_grant` if the proof does not lead to the customer that the grant returned */
  private async customerOf(row: ProofRow, { entityId, organizationId }: RedeemedFor): Promise<CustomerRow> {
    const customer = typeof entityId === 'string' ? await this.customers.find(entityId) : undefined;
    const isItsCustomer = row.customer_id === NO_CUSTOMER || row.customer_id === entityId;
    const { agent_organization_id: ofAgent } = row;
    const isOfAgent = ofAgent === null || ofAgent === organizationId;
    if (customer?.organization_id !== organizationId || !isItsCustomer || !isOfAgent) throw ERRORS.otherCustomer();
    return customer;
  }

  private redemptionOf({ id }: ProofRow, entityId: string, act: Actor | undefined, ttlSeconds: number): Redemption {
    const now = this.clock.now();
    const endOfToken = new Date(now + ttlSeconds * 1000);
    const { agentSessionId, agentEpoch } = agentOf(act);
    const set = [entityId, agentSessionId, agentEpoch, endOfToken, endOfToken] as const;
    return [...set, id, entityId, new Date(now), agentSessionId];
  }

  /** @returns the text that the extension stores */
  private async insertIn(
    manager: EntityManager,
    origin: SessionOrigin & Partial<Session>,
    endOfParent?: Date,
  ): Promise<string> {
    const proof = randomUUID();
    const expiresAt = new Date(Math.min(this.clock.now() + MAX_AGE_MS, endOfParent?.getTime() ?? Infinity));
    const session = { id: sha256(proof), kind: 'proof', expiresAt, redeemableUntil: expiresAt } as const;
    await this.sessions.insertIn(manager, { ...origin, ...session });
    return proof;
  }
}
