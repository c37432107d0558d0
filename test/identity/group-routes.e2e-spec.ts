import { Module } from '@nestjs/common';
import { describe, it } from 'vitest';
import type { AgentPrincipal } from '../../src/bearer/principal.js';
import { CUSTOMERS_OWN } from '../../src/bearer/principal.js';
import { type Grant, GrantBody, type GrantRequest, type GrantResult } from '../../src/token/grant.js';
import { GrantType } from '../../src/token/grant-type.decorator.js';
import { expectError } from '../support/expect-error.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { ACME_AGENT, ACME_SITE, PUBLIC_SITE, RIVAL, SHARED } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

/** Serves groups, and takes the organization from the path alone: its body declares none. */
@GrantType('raffle', { body: GrantBody, groups: true })
class RaffleGrant implements Grant {
  async grant({ organization }: GrantRequest): Promise<GrantResult> {
    return { entityId: 'a winner', organizationId: organization?.id ?? SHARED };
  }
}

@GrantType('raffle_office', { body: GrantBody, groups: true, agentScope: CUSTOMERS_OWN })
class RaffleOfficeGrant implements Grant<GrantBody, AgentPrincipal> {
  async grant({ organization }: GrantRequest<GrantBody, AgentPrincipal>): Promise<GrantResult> {
    return { entityId: 'a winner', organizationId: organization.id };
  }
}

@Module({ providers: [RaffleGrant, RaffleOfficeGrant] })
class RaffleModule {}

describe('the token route of a group, for a grant whose body declares no organization_id', () => {
  const service = useService({ modules: [RaffleModule] });

  it('rejects an organization whose groups share one identity', async () => {
    const body = { grant_type: 'raffle', client_id: PUBLIC_SITE };
    const response = await service.post(`/v2/customer/${SHARED}/sales/token`, body);
    expectError(response, {
      status: 400,
      error: 'unauthorized_client',
      hint: 'group_id: the groups of this organization share one identity',
    });
  });

  it('rejects an agent of another organization than that of the path', async () => {
    const token = await issueAgentToken(service, { email: ACME_AGENT.email, clientId: ACME_SITE });
    const body = { grant_type: 'raffle_office', client_id: PUBLIC_SITE };
    const authorization = { authorization: `Bearer ${token}` };
    const response = await service.post(`/v2/customer/${RIVAL}/sales/token`, body, authorization);
    expectError(response, {
      status: 400,
      error: 'invalid_request',
      hint: 'organization_id: must be the organization of the agent',
    });
  });
});
