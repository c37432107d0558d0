import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { lineageByAgent, lineageByBoth, lineageByTransfer, type TokenLineage } from '../access-token/token-lineage.js';
import { Descents } from '../bearer/descents.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import type { Customer } from '../identity/customer.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import type { GrantResult } from './grant.js';

/** The claims of a token that depend on its customer and on its origin. */
export interface CustomerClaims extends TokenLineage {
  /** Only for a customer of a group. */
  group_id?: string;
}

const WRONG_GROUP =
  'the grant returned a groupId that is not the group of the customer; return groupId of the Customer, and create the ' +
  'customer in its group: create({ organizationId, groupId }) or createIfAbsent(id, { organizationId, groupId })';

/** Determines the tokens that a customer token descends from, the generations with which it ends, and its group. */
@Injectable()
export class CustomerLineages {
  constructor(
    private readonly identities: Identities,
    private readonly descents: Descents,
    private readonly denylist: Denylist,
  ) {}

  /**
   * If the grant does not return the group and the generation of the customer, they are read with one more statement.
   * So is the group, unless neither the request nor the result has one, or a grant of this service has read it.
   *
   * @param requestedGroup the group in the path of the request; the empty string if it has none
   * @throws OAuthError `invalid_grant` if the customer was erased in the meantime, or if the proof has ended with the
   * token that it descends from; 500 if the group is not the customer's
   */
  async of(result: GrantResult, agent: AgentPrincipal | undefined, requestedGroup: string): Promise<CustomerClaims> {
    const granted = result.descent === undefined ? result : await this.ofDescendant(result, result.descent, agent);
    const { groupId, generation } = await this.completed(granted);
    const mayHaveGroup = groupId !== '' || requestedGroup !== '';
    if (result.lineage === undefined && mayHaveGroup) await this.assertGroup(granted.entityId, groupId);
    const group = groupId === '' ? {} : { group_id: groupId };
    if (granted.lineage) return { ...granted.lineage, ...group };
    return { ...(agent ? lineageByAgent(agent.claims, generation) : { gen: generation }), ...group };
  }

  /**
   * The result with the lineage of a token that descends from the caller that created the proof, as an identity transfer
   * would give it. The customer is read before the check of what has ended, so that no later generation is missed.
   */
  private async ofDescendant(
    granted: GrantResult,
    descent: string,
    agent: AgentPrincipal | undefined,
  ): Promise<GrantResult> {
    const { bearer, organizationId, entityId = granted.entityId, generation } = this.descents.read(descent);
    if (granted.entityId !== entityId || granted.organizationId !== organizationId)
      throw OAuthError.invalidGrant('descent: of another customer or organization');
    const customer = await this.identities.find(entityId, organizationId);
    if (!customer) throw OAuthError.invalidGrant('descent: its customer was erased, or is of another organization');
    const ofAgent =
      bearer.aud === 'customer-api' ? undefined : (generation ?? granted.generation ?? customer.generation);
    const lineage = lineageByTransfer(bearer, ofAgent);
    const { jti, client_id, iat } = bearer;
    if (await this.denylist.hasEnded({ jti, sub: entityId, client_id, iat, aud: 'customer-api', ...lineage }))
      throw OAuthError.invalidGrant('descent: the token of the caller has ended');
    const { groupId = customer.groupId } = granted;
    return { ...granted, groupId, lineage: agent ? lineageByBoth(lineage, agent.claims) : lineage };
  }

  /** A customer without a row has no group. */
  private async assertGroup(entityId: string, groupId: string): Promise<void> {
    const current = await this.identities.currentOf(entityId);
    if (!current) throw OAuthError.invalidGrant('the customer was erased');
    if (current.groupId !== groupId) throw OAuthError.serverError(new Error(WRONG_GROUP));
  }

  private async completed({
    entityId,
    groupId,
    lineage,
    generation = lineage?.gen,
  }: GrantResult): Promise<Pick<Customer, 'groupId' | 'generation'>> {
    if (groupId !== undefined && generation !== undefined) return { groupId, generation };
    const current = await this.identities.currentOf(entityId);
    if (!current) throw OAuthError.invalidGrant('the customer was erased');
    return { groupId: groupId ?? current.groupId, generation: generation ?? current.generation };
  }
}
