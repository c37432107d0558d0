import { HttpCode, Module, Post } from '@nestjs/common';
import { IsString, Matches, MaxLength } from 'class-validator';
import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  Caller,
  ClientRequest,
  Identities,
  IdentityModule,
  Limits,
  OAuthError,
  PublicController,
  randomSecret,
  UUID,
} from 'customer-authorization-service/grant';
import type { RouteKit } from '../../../src/routes/route-kit.js';

export const CUSTOMER_LINK = 'POST /v2/customer/kit_customer_link';

/** A mistake of the author of a route. The route without a mistake satisfies every rule. */
export type CustomerLinkMistake = 'does not look up the customer' | 'takes from no limit';

class CustomerLinkBody {
  @IsString()
  @MaxLength(128)
  client_id!: string;

  @Matches(UUID)
  entity_id!: string;
}

class CustomerLinkResponse {
  @IsString()
  url!: string;
}

const LIMITS = { kit_links: '1000000/1' } as const;

/** An agent creates a link for a customer. */
export function customerLinkRoute(mistake?: CustomerLinkMistake): RouteKit {
  @PublicController('v2/customer/kit_customer_link')
  class CustomerLinkController {
    constructor(
      private readonly identities: Identities,
      private readonly limits: Limits<typeof LIMITS>,
    ) {}

    @Post()
    @ApiRoute({ summary: 'Create a link for a customer', response: CustomerLinkResponse, errorStatuses: [429] })
    @HttpCode(200)
    async create(
      @Caller(AgentGuard('links:create')) { organizationId }: AgentPrincipal,
      @ClientRequest(CustomerLinkBody) { body }: ClientRequest<CustomerLinkBody>,
    ): Promise<CustomerLinkResponse> {
      if (mistake !== 'takes from no limit') this.limits.take('kit_links', `${organizationId} ${body.entity_id}`);
      const customer = await this.identities.find(body.entity_id, organizationId);
      if (!customer && mistake !== 'does not look up the customer')
        throw OAuthError.invalidRequest('entity_id: unknown');
      return { url: `https://kit.example/#${randomSecret('base64url')}` };
    }
  }

  @Module({ imports: [IdentityModule], controllers: [CustomerLinkController] })
  class CustomerLinkModule {}

  return {
    modules: [CustomerLinkModule],
    limits: LIMITS,
    callers: ['agent'],
    actsOn: { customer: 'entity_id' },
    agentScope: 'links:create',
    valid: async ({ clientId, newCustomer }) => ({
      body: { client_id: clientId, entity_id: (await newCustomer()).entityId },
    }),
  };
}
