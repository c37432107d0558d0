import { Delete, Get, Req, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import { Denylist } from '../access-token/denylist.js';
import { BearerGuard } from '../agent-auth/bearer/bearer.guard.js';
import type { CustomerPrincipal } from '../agent-auth/principal.js';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { PublicController } from '../platform/http/surfaces.js';
import { Registry } from '../registry/registry.js';

/** What a customer's own token is good for here: to ask about itself, and to end itself (contract, section 9). */
@PublicController('v2/customer')
@UseGuards(BearerGuard)
export class CustomerAccountController {
  constructor(
    private readonly registry: Registry,
    private readonly denylist: Denylist,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  @Get('info')
  info(@Req() request: Request): Record<string, unknown> {
    const { entityId, clientId, organizationId, token } = this.customerOf(request);
    return {
      access_token: request.headers.authorization?.replace(/^\S+ +/, ''),
      client_id: clientId,
      entity_id: entityId,
      expires_in: token.exp - this.clock.seconds(),
      organization_id: organizationId,
      token_type: 'Bearer',
    };
  }

  @Delete('token')
  async end(@Req() request: Request): Promise<object> {
    const { token, entityId } = this.customerOf(request);
    await this.denylist.revokeToken(token);
    const actor = { kind: 'customer', id: entityId } as const;
    this.audit.record({ event: 'token.revoked', outcome: 'success', actor, subject: { kind: 'token', id: token.jti } });
    return {};
  }

  private customerOf({ principal, headers }: Request): CustomerPrincipal {
    if (principal?.kind !== 'customer') throw OAuthError.invalidToken('not a customer token');
    if (headers.origin !== undefined) this.registry.clientCalling(principal.clientId, headers.origin);
    return principal;
  }
}
