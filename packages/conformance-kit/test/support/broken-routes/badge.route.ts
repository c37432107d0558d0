import { HttpCode, Post, type Type } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import {
  ApiRoute,
  Caller,
  CustomerGuard,
  type CustomerPrincipal,
  GrantBody,
  type GrantResult,
  OAuthError,
  PublicController,
  randomSecret,
  sha256,
} from 'customer-authorization-service/grant';
import type { GrantKit } from '../../../src/grant-kit.js';
import type { RouteKit } from '../../../src/routes/route-kit.js';
import { grantOf } from '../grant-of.js';

export const BADGE = 'POST /v2/customer/kit_badge';

class BadgeResponse {
  @IsString()
  badge!: string;
}

class BadgeBody extends GrantBody {
  @Matches(/^[\w-]{43}$/)
  badge!: string;
}

type StoredBadge = GrantResult & { generation: number };

/** A customer gets a badge, which is used once. The badges are in memory, for all processes. */
function badges(mistake?: string): { grant: Type; modules: Type[] } {
  const stored = new Map<string, StoredBadge>();

  @PublicController('v2/customer/kit_badge')
  class BadgeController {
    @Post()
    @ApiRoute({ summary: 'Create a badge', response: BadgeResponse, errorStatuses: [429] })
    @HttpCode(200)
    async create(@Caller(CustomerGuard) customer: CustomerPrincipal): Promise<BadgeResponse> {
      const badge = randomSecret('base64url');
      const { entityId, organizationId, claims } = customer;
      const proof = mistake === 'forgets the caller' ? {} : { proof: await customer.proof() };
      stored.set(sha256(badge), { entityId, organizationId, generation: claims.gen ?? 0, ...proof });
      return { badge };
    }
  }

  return grantOf(
    'kit_badge',
    { body: BadgeBody },
    async ({ body, client }, customers) => {
      const hash = sha256(body.badge);
      const badge = stored.get(hash);
      if (!badge || !client.usableIn(badge.organizationId)) throw OAuthError.invalidGrant('no such badge');
      const customer = await customers.find(badge.entityId, badge.organizationId);
      if (customer?.generation !== badge.generation) throw OAuthError.invalidGrant('the sessions ended');
      if (!stored.delete(hash)) throw OAuthError.invalidGrant('used');
      return badge;
    },
    { controllers: [BadgeController] },
  );
}

export function badgeRoute(mistake?: string): RouteKit {
  const { modules } = badges(mistake);
  return {
    modules,
    callers: ['customer'],
    actsOn: 'own organization',
    anyClient: true,
    valid: () => ({}),
    redeem: (_request, { body }) => ({ grant_type: 'kit_badge', badge: body.badge }),
  };
}

export function badgeGrant(mistake?: string): { grant: Type } & GrantKit & { modules: Type[] } {
  return {
    ...badges(mistake),
    valid: async ({ service, newCustomer }) => {
      const headers = { Authorization: `Bearer ${(await newCustomer()).accessToken}` };
      const { badge } = (await service.post(BADGE.slice(5), '', headers)).body;
      return { badge };
    },
    singleUse: true,
    boundToClient: false,
    lifetime: false,
  };
}
