import { HttpCode, Post } from '@nestjs/common';
import { IsString, Matches, MaxLength } from 'class-validator';
import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  BearerGuard,
  Caller,
  ClientRequest,
  CustomerService,
  GrantBody,
  Limits,
  OAuthError,
  type Principal,
  PublicController,
  randomSecret,
  UUID,
} from 'customer-authorization-service/grant';
import { assertAgent } from '../../../../../src/http/callers/principal.js';
import type { RouteKit } from '../../../src/routes/route-kit.js';
import { grantOf } from '../grant-of.js';

export const LINK = 'POST /v2/customer/kit_link';
const SCOPE = 'links:create';
const LIMITS = { kit_links: '1000000/1' } as const;

class LinkBody {
  @IsString()
  @MaxLength(128)
  client_id!: string;

  @Matches(UUID)
  entity_id!: string;
}

class LinkResponse {
  @IsString()
  url!: string;
}

const refuse = () => Promise.reject(OAuthError.invalidGrant('no link'));

/** Admits agents with any scope. */
class AnyAgentGuard extends BearerGuard {
  override admit(principal: Principal): AgentPrincipal {
    return assertAgent(principal);
  }
}

/** An agent creates a link for a customer. */
export function linkRoute(mistake?: string): RouteKit {
  const options = mistake === 'names no grant' ? {} : { grant: 'kit_link' };
  const guard = mistake === 'requires no scope' ? (AnyAgentGuard as ReturnType<typeof AgentGuard>) : AgentGuard(SCOPE);

  @PublicController('v2/customer/kit_link')
  class LinkController {
    constructor(
      private readonly customers: CustomerService,
      private readonly limits: Limits<typeof LIMITS>,
    ) {}

    @Post()
    @ApiRoute({ summary: 'Create a link for a customer', response: LinkResponse, errorStatuses: [429] })
    @HttpCode(200)
    async create(
      @Caller(guard) { organizationId }: AgentPrincipal,
      @ClientRequest(LinkBody, options) { body: { entity_id: entityId } }: ClientRequest<LinkBody>,
    ): Promise<LinkResponse> {
      if (mistake !== 'takes from no limit') this.limits.take('kit_links', `${organizationId} ${entityId}`);
      const customer = await this.customers.find(entityId, organizationId);
      if (!customer && mistake !== 'does not look up the customer')
        throw OAuthError.invalidRequest('entity_id: unknown');
      return { url: `https://kit.example/#${randomSecret('base64url')}` };
    }
  }

  return {
    modules: grantOf('kit_link', { body: GrantBody }, refuse, { controllers: [LinkController] }).modules,
    limits: LIMITS,
    callers: ['agent'],
    actsOn: { customer: 'entity_id' },
    agentScope: SCOPE,
    redeem: false,
    valid: async ({ clientId, newCustomer }) => ({
      body: { client_id: clientId, entity_id: (await newCustomer()).entityId },
    }),
  };
}
