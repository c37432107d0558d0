import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { AccessTokenClaims } from '../access-token/access-tokens.js';
import type { Actor, SessionClaims } from '../access-token/token-claims.js';
import { type Descent, Descents } from '../bearer/descents.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import type { Customer } from '../customer/customer.js';
import { Customers } from '../customer/customers.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { AgentSessions } from '../session/agent/agent-sessions.js';
import { Devices } from '../session/devices.js';
import { agentOf, Sessions } from '../session/sessions.js';
import { TokenValidity } from '../session/token-validity.js';
import type { GrantResult } from './grant.js';
import type { TokenRequest } from './token-checks.js';

/** The claims of a token that depend on its customer and on its session. */
export type CustomerClaims = SessionClaims & Pick<AccessTokenClaims, 'group_id'>;

/**
 * The grants of this service, which read the row of each customer that they return, or a row that names the customer.
 * An extension cannot have a grant with one of these names.
 */
const GRANTS_THAT_READ_THE_CUSTOMER = new Set([
  'agent_token',
  'cookie',
  'identity_token',
  'refresh_token',
  'urn:ietf:params:oauth:grant-type:jwt-bearer',
]);

const ERRORS = {
  erased: () => OAuthError.invalidGrant('the customer was erased'),
  wrongGroup: () =>
    OAuthError.serverError(
      new Error(
        'the grant returned a groupId that is not the group of the customer; return groupId of the Customer, and create ' +
          'the customer in its group: create({ organizationId, groupId }) or createIfAbsent(id, { organizationId, groupId })',
      ),
    ),
  otherGroup: () =>
    OAuthError.serverError(
      new Error(
        'the grant returned a customer of another group than that of the path; find or create it in the group `groupId` ' +
          'of the request',
      ),
    ),
};

/** Determines the session of a customer token, the generation with which it ends, and its group. */
@Injectable()
export class CustomerClaimsSource {
  constructor(
    private readonly identities: Identities,
    private readonly customers: Customers,
    private readonly sessions: Sessions,
    private readonly agentSessions: AgentSessions,
    private readonly devices: Devices,
    private readonly validity: TokenValidity,
    private readonly descents: Descents,
    private readonly clock: Clock,
  ) {}

  /**
   * The row of the customer decides its organization and group.
   *
   * @throws OAuthError `invalid_grant` if the customer was erased in the meantime, or the proof has ended with the
   * token that it was made with; 500 if the organization or the group is not the customer's, or the group not that of
   * the path
   */
  async of(result: GrantResult, request: TokenRequest, ttlSeconds: number): Promise<CustomerClaims> {
    const { grant, caller: agent, route } = request;
    const { descent } = result;
    const granted = descent === undefined ? result : await this.ofProof(result, descent, agent, ttlSeconds);
    const isRead = descent !== undefined || GRANTS_THAT_READ_THE_CUSTOMER.has(grant.name);
    const { groupId, generation } = await this.currentOf(granted, isRead);
    if (route.group && route.group.groupId !== groupId) throw ERRORS.otherGroup();
    const group = groupId === '' ? {} : { group_id: groupId };
    const session = granted.session ?? {
      gen: generation,
      ...(agent && { act: await this.agentSessions.actorFor(agent) }),
    };
    return { ...session, ...group };
  }

  /** A token by a proof gets a session, which ends with the session, or the agent, whose token made the proof. */
  private async ofProof(
    granted: GrantResult,
    descent: string,
    agent: AgentPrincipal | undefined,
    ttlSeconds: number,
  ): Promise<GrantResult> {
    const proof = this.descents.read(descent);
    const { organizationId, entityId = granted.entityId, bearer } = proof;
    if (granted.entityId !== entityId || granted.organizationId !== organizationId)
      throw OAuthError.invalidGrant('descent: of another customer or organization');
    const customer = await this.identities.find(entityId, organizationId);
    if (!customer) throw OAuthError.invalidGrant('descent: its customer was erased, or is of another organization');
    if ((granted.groupId ?? customer.groupId) !== customer.groupId) throw ERRORS.wrongGroup();
    const act =
      bearer.aud === 'customer-api'
        ? bearer.act
        : await this.agentSessions.actorFor({ organizationId, claims: bearer });
    const caller = agent && (await this.agentSessions.actorFor(agent));
    assertSameAgent(act, caller);
    const expiresAt = new Date(this.clock.now() + ttlSeconds * 1000);
    const generation = proof.generation ?? granted.generation ?? customer.generation;
    const session = await this.beginProof(entityId, generation, proof, caller ?? act, expiresAt);
    if (!session) throw OAuthError.invalidGrant('descent: the sessions of the customer have ended');
    return { ...granted, groupId: customer.groupId, generation: session.gen, session };
  }

  private beginProof(
    entityId: string,
    generation: number,
    { bearer }: Descent,
    act: Actor | undefined,
    expiresAt: Date,
  ): Promise<SessionClaims | undefined> {
    return this.customers.change({ entityId, generation }, async (manager) => {
      const all = await this.sessions.allOf(manager, entityId);
      if (await this.hasEnded(manager, bearer))
        throw OAuthError.invalidGrant('descent: the token of the caller has ended');
      const origin = bearer.aud === 'customer-api' ? await this.sessions.childOf(manager, bearer, all) : { depth: 1 };
      await this.devices.assertMayProve(manager, all);
      const id = randomUUID();
      const proof = { id, kind: 'proof', customerId: entityId, expiresAt } as const;
      await this.sessions.insertIn(manager, { ...origin, ...proof, ...agentOf(act) });
      return { gen: generation, sid: id, ep: 0, ...(act && { act }) };
    });
  }

  /** A customer's token that was ended after it had expired has an entry of its own, because its session may go on. */
  private async hasEnded(manager: EntityManager, bearer: Descent['bearer']): Promise<boolean> {
    if (await this.validity.hasEnded(bearer, manager)) return true;
    if (bearer.aud !== 'customer-api' || bearer.sid === undefined) return false;
    const { sid: _sid, ep: _ep, ...withoutSession } = bearer;
    return this.validity.hasEnded(withoutSession, manager);
  }

  private async currentOf(granted: GrantResult, isRead: boolean): Promise<Pick<Customer, 'groupId' | 'generation'>> {
    const { entityId, organizationId, groupId, session, generation = session?.gen } = granted;
    if (isRead && groupId !== undefined && generation !== undefined) return { groupId, generation };
    const current = await this.identities.findGranted(entityId, organizationId);
    if (!current) throw ERRORS.erased();
    if ((groupId ?? current.groupId) !== current.groupId) throw ERRORS.wrongGroup();
    return { groupId: current.groupId, generation: generation ?? current.generation };
  }
}

/**
 * @throws OAuthError `invalid_grant` for a proof that was made with a token of another session of an agent than the
 * caller's, because a token ends with one session of an agent
 */
function assertSameAgent(act: Actor | undefined, caller: Actor | undefined): void {
  if (act && caller && act.sid !== caller.sid)
    throw OAuthError.invalidGrant('descent: of another agent than the caller');
}
