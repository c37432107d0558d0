import { Injectable } from '@nestjs/common';
import type { AgentPrincipal } from '../../bearer/principal.js';
import { Identities } from '../../identity/identities.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { CUSTOMERS_OWN } from '../../oauth/scopes.js';
import { type Grant, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';
import { AgentTokenBody } from './agent-token.body.js';

/** An agent gets tokens for all customers of its organization, and creates new customers (protocol §4.3, §4.6). */
@Injectable()
@GrantType('agent_token', {
  body: AgentTokenBody,
  agentScope: CUSTOMERS_OWN,
  responds: ['client_id', 'organization_id'],
})
export class AgentTokenGrant implements Grant<AgentTokenBody, AgentPrincipal> {
  constructor(private readonly identities: Identities) {}

  async grant({ body, agent }: GrantRequest<AgentTokenBody, AgentPrincipal>): Promise<GrantResult> {
    const { organizationId } = agent;
    const { entity_id: entityId } = body;
    if (entityId === undefined) return this.identities.create(organizationId);
    // the same error for a customer of another organization as for an unknown id, so that agents cannot probe for ids
    const customer = await this.identities.find(entityId, organizationId);
    if (!customer) throw OAuthError.invalidRequest('entity_id: unknown');
    return customer;
  }
}
