import { HttpCode, Module, Post } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import {
  ApiRoute,
  ClientRequest,
  OAuthError,
  PublicController,
  randomSecret,
} from 'customer-authorization-service/grant';
import type { RouteKit } from '../../../src/routes/route-kit.js';

export const CLAIM = 'POST /v2/customer/kit_claim';

/** A mistake of the author of a route. The route without a mistake satisfies every rule. */
export type ClaimMistake = 'admits any organization';

class ClaimBody {
  @IsString()
  client_id!: string;

  @IsString()
  organization_id!: string;

  @Matches(/^[\w-]{43}$/)
  claim!: string;
}

/** A page without a bearer token confirms a claim of its organization. The claims are in memory, for all processes. */
export function claimRoute(mistake?: ClaimMistake): RouteKit {
  const owners = new Map<string, string>();

  @PublicController('v2/customer/kit_claim')
  class ClaimController {
    @Post()
    @ApiRoute({ summary: 'Confirm a claim' })
    @HttpCode(200)
    confirm(@ClientRequest(ClaimBody) { body, organization }: ClientRequest<ClaimBody>): object {
      const owner = owners.get(body.claim);
      if (owner !== organization?.id && !(owner && mistake)) throw OAuthError.invalidRequest('claim: unknown');
      return {};
    }
  }

  @Module({ controllers: [ClaimController] })
  class ClaimModule {}

  return {
    modules: [ClaimModule],
    callers: [],
    resends: false,
    valid: ({ clientId: client_id, organizationId: organization_id }) => {
      const claim = randomSecret('base64url');
      owners.set(claim, organization_id);
      return { body: { client_id, organization_id, claim } };
    },
  };
}
