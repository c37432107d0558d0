import { Injectable, Module } from '@nestjs/common';
import { IsBoolean, IsString } from 'class-validator';
import { type AgentPrincipal, CUSTOMERS_OWN } from '../../http/callers/principal.js';
import { CustomerService } from '../../identity/customer.service.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { OrganizationUsers } from '../../identity/users/organization-users.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { IsIdText, IsUuid } from '../../platform/validation/text-rules.js';
import { ApiEnum, Optional } from '../../platform/validation/validation.js';
import { type Grant, GrantBody, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';

/** The parameters of protocol §4.3 and §4.6. */
export class AgentTokenBody extends GrantBody {
  @ApiEnum(['token'], 'Always `token`.')
  response_type!: 'token';

  @Optional()
  @IsUuid()
  @ApiProperty(
    'The customer that gets a new token. Without it and `external_id`, the request creates a customer.',
    EXAMPLE.entityId,
  )
  entity_id?: string;

  @Optional()
  @IsString()
  @IsIdText()
  @ApiProperty(
    "The organization's own id of a user. The request finds the customer with this id, or creates it.",
    EXAMPLE.externalId,
  )
  external_id?: string;

  @Optional()
  @IsUuid()
  override organization_id?: string;

  @Optional()
  @IsString()
  override redirect_uri?: string;
}

class AgentTokenFields {
  @Optional()
  @IsBoolean()
  @ApiProperty('Only with `external_id`: whether the request created the customer.', true)
  created?: boolean;
}

const ERRORS = {
  unknown: () => OAuthError.invalidRequest('entity_id: unknown'),
  bothIds: () => OAuthError.invalidRequest('external_id: must not be sent with entity_id'),
};

/** An agent gets tokens for all customers of its organization, and creates new customers (protocol §4.3, §4.6). */
@Injectable()
@GrantType('agent_token', {
  body: AgentTokenBody,
  uses: 'unlimited',
  readsCustomer: true,
  agentScope: CUSTOMERS_OWN,
  responds: ['client_id', 'organization_id'],
  mayRespond: ['created'],
  api: {
    description:
      'A backend gets a token for a customer of its organization, or creates a customer. It sends the access token of an agent with the scope `customers:own` as bearer token.',
    response: AgentTokenFields,
  },
})
export class AgentTokenGrant implements Grant<AgentTokenBody, AgentPrincipal> {
  constructor(
    private readonly customers: CustomerService,
    private readonly users: OrganizationUsers,
  ) {}

  async grant({ body, agent }: GrantRequest<AgentTokenBody, AgentPrincipal>): Promise<GrantResult> {
    const { organizationId } = agent;
    const { entity_id: entityId, external_id: externalId } = body;
    if (externalId !== undefined) return this.ofUser(externalId, entityId, organizationId);
    if (entityId === undefined) return this.customers.create(organizationId);
    // the same error for a customer of another organization as for an unknown id, so that agents cannot probe for ids
    const customer = await this.customers.find(entityId, organizationId);
    if (!customer) throw ERRORS.unknown();
    return customer;
  }

  /** Finds or creates the customer of the organization's user (protocol §5.7). */
  private async ofUser(userId: string, entityId: string | undefined, organizationId: string): Promise<GrantResult> {
    if (entityId !== undefined) throw ERRORS.bothIds();
    const user = { organizationId, userId, creator: 'agent' } as const;
    const { created, ...customer } = await this.users.customerOf(user);
    return { ...customer, response: { created } };
  }
}

@Module({
  imports: [IdentityModule],
  providers: [AgentTokenGrant],
})
export class AgentTokenGrantModule {}
