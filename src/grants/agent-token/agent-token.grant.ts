import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { AgentPrincipal } from '../../bearer/principal.js';
import { Identities } from '../../identity/identities.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { CUSTOMERS_OWN } from '../../oauth/scopes.js';
import { OrganizationUsers } from '../../organization-user/organization-users.js';
import { type Grant, type GrantRequest, type GrantResult } from '../../token/grant.js';
import { GrantType } from '../../token/grant-type.decorator.js';
import { AGENT_TOKEN_DESCRIPTION, AgentTokenBody } from './agent-token.body.js';

/** An agent gets tokens for all customers of its organization, and creates new customers (protocol §4.3, §4.6). */
@Injectable()
@GrantType('agent_token', {
  body: AgentTokenBody,
  agentScope: CUSTOMERS_OWN,
  responds: ['client_id', 'organization_id'],
  mayRespond: ['created'],
  api: AGENT_TOKEN_DESCRIPTION,
})
export class AgentTokenGrant implements Grant<AgentTokenBody, AgentPrincipal> {
  constructor(
    private readonly identities: Identities,
    private readonly users: OrganizationUsers,
  ) {}

  async grant({ body, agent }: GrantRequest<AgentTokenBody, AgentPrincipal>): Promise<GrantResult> {
    const { organizationId } = agent;
    const { entity_id: entityId, external_id: externalId } = body;
    if (externalId !== undefined) return this.ofUser(externalId, entityId, organizationId);
    if (entityId === undefined) return this.identities.create(organizationId);
    // the same error for a customer of another organization as for an unknown id, so that agents cannot probe for ids
    const customer = await this.identities.find(entityId, organizationId);
    if (!customer) throw OAuthError.invalidRequest('entity_id: unknown');
    return customer;
  }

  /** Finds or creates the customer of the organization's user (protocol §5.7). */
  private async ofUser(userId: string, entityId: string | undefined, organizationId: string): Promise<GrantResult> {
    if (entityId !== undefined) throw OAuthError.invalidRequest('external_id: must not be sent with entity_id');
    const user = { organizationId, userId, attempt: randomUUID(), creator: 'agent' } as const;
    const { created, ...customer } = await this.users.customerOf(user);
    return { ...customer, response: { created } };
  }
}
