import { Injectable } from '@nestjs/common';
import type { AgentPrincipal } from '../../bearer/principal.js';
import { Identities } from '../../identity/identities.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { CUSTOMERS_OWN } from '../../oauth/scopes.js';
import { type Grant, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';
import { AgentTokenBody } from './agent-token.body.js';

/** Protocol §4.3 and §4.6: an agent speaks for any customer of its organization, and makes new ones. */
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
    // somebody else's customer is as unknown as one that does not exist
    const customer = await this.identities.find(entityId, organizationId);
    if (!customer) throw OAuthError.invalidRequest('entity_id: unknown');
    return customer;
  }
}
