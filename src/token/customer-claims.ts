import { Injectable } from '@nestjs/common';
import type { AccessTokenClaims } from '../access-token/access-tokens.js';
import type { SessionClaims } from '../access-token/session-claims.js';
import type { Customer } from '../customer/customer.js';
import type { AgentPrincipal } from '../http/callers/principal.js';
import { CustomerService } from '../identity/customer.service.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Proofs } from '../redemption/proofs.js';
import { AgentSessions } from '../session/agent/agent-sessions.js';
import type { GrantMetadata, GrantResult } from './grant.js';

interface GrantedTo {
  grant: GrantMetadata;
  agent: AgentPrincipal | undefined;
  /** The group of the path, if it has one. */
  groupId: string | undefined;
}

/** The claims of a token that depend on its customer and on its session. */
export type CustomerClaims = SessionClaims & Pick<AccessTokenClaims, 'group_id' | 'user_verified'>;

type CurrentCustomer = Pick<Customer, 'groupId' | 'generation' | 'hasUser'>;

const ERRORS = {
  erased: () => OAuthError.invalidGrant('the customer was erased'),
  sessionsEnded: () => OAuthError.invalidGrant('the sessions of the customer have ended since the proof was created'),
  wrongGroup: () =>
    OAuthError.serverError(
      new Error(
        'the grant returned a groupId that is not the group of the customer; return groupId of the Customer, and create ' +
          'the customer in its group: create({ organizationId, groupId })',
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
    private readonly customers: CustomerService,
    private readonly agentSessions: AgentSessions,
    private readonly proofs: Proofs,
  ) {}

  /**
   * The row of the customer decides its organization and group.
   *
   * @throws OAuthError `invalid_grant` if the customer was erased in the meantime, or the proof has ended with the
   * token that it was made with; 500 if the organization or the group is not the customer's, or the group not that of
   * the path
   */
  async of(
    result: GrantResult,
    { grant, agent, groupId: ofPath }: GrantedTo,
    ttlSeconds: number,
  ): Promise<CustomerClaims> {
    const { proof } = result;
    const granted = proof === undefined ? result : await this.ofProof(result, proof, agent, ttlSeconds);
    const isRead = proof !== undefined || grant.readsCustomer === true;
    const { groupId, generation, hasUser } = await this.currentOf(granted, grant, isRead);
    if (ofPath !== undefined && ofPath !== groupId) throw ERRORS.otherGroup();
    const group = groupId === '' ? {} : { group_id: groupId };
    const session = granted.session ?? {
      gen: generation,
      ...(agent && { act: await this.agentSessions.actorFor(agent) }),
    };
    const verified = hasUser || grant.verifiesUser ? ({ user_verified: true } as const) : {};
    return { ...session, ...group, ...verified };
  }

  /** The session of the proof, which ends with the session, or the agent, whose token made it. */
  private async ofProof(
    granted: GrantResult,
    proof: string,
    caller: AgentPrincipal | undefined,
    ttlSeconds: number,
  ): Promise<GrantResult> {
    const agent = caller && (await this.agentSessions.actorFor(caller));
    const { session, groupId, hasUser } = await this.proofs.redeem(proof, granted, agent, ttlSeconds);
    if ((granted.groupId ?? groupId) !== groupId) throw ERRORS.wrongGroup();
    return { ...granted, groupId, generation: session.gen, hasUser, session };
  }

  private async currentOf(
    granted: GrantResult,
    { endsWith }: GrantMetadata,
    isRead: boolean,
  ): Promise<CurrentCustomer> {
    const { entityId, organizationId, groupId, hasUser, session, generation = session?.gen } = granted;
    if (isRead && groupId !== undefined && generation !== undefined && hasUser !== undefined)
      return { groupId, generation, hasUser };
    const current = await this.customers.findGranted(entityId, organizationId);
    if (!current) throw ERRORS.erased();
    if ((groupId ?? current.groupId) !== current.groupId) throw ERRORS.wrongGroup();
    if (endsWith === 'sessions' && generation !== current.generation) throw ERRORS.sessionsEnded();
    return { ...current, generation: generation ?? current.generation };
  }
}
