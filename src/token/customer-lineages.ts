import { Injectable } from '@nestjs/common';
import { lineageByAgent, type TokenLineage } from '../access-token/token-lineage.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import type { Customer } from '../identity/customer.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
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
  constructor(private readonly identities: Identities) {}

  /**
   * If the grant does not return the group and the generation of the customer, they are read with one more statement.
   * So is the group of a customer that the grant did not get from `Identities` in this request.
   *
   * @throws OAuthError `invalid_grant` if the customer was erased in the meantime; 500 if the group is not the customer's
   */
  async of(granted: GrantResult, agent: AgentPrincipal | undefined): Promise<CustomerClaims> {
    const { groupId, generation } = await this.completed(granted);
    if (!granted.lineage) await this.assertGroup(granted.entityId, groupId);
    const group = groupId === '' ? {} : { group_id: groupId };
    if (granted.lineage) return { ...granted.lineage, ...group };
    return { ...(agent ? lineageByAgent(agent.claims, generation) : { gen: generation }), ...group };
  }

  /** A customer without a row has no group. A token without a group is harmless, so it costs no statement. */
  private async assertGroup(entityId: string, groupId: string): Promise<void> {
    const { foundCustomer } = requestContext.current() ?? {};
    const isFound = foundCustomer?.entityId === entityId;
    if (!isFound && groupId === '') return;
    const current = isFound ? foundCustomer : await this.identities.currentOf(entityId);
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
