import { Delete, Get } from '@nestjs/common';
import { IsBoolean } from 'class-validator';
import { declaredClaimsOf } from '../access-token/reserved-claims.js';
import { Actor, USER_VERIFIED } from '../access-token/session-claims.js';
import { RevocationLimit } from '../feed/revocation-limit.js';
import { CustomerGuard, EndedCustomerGuard } from '../http/callers/bearer.guard.js';
import type { CustomerPrincipal } from '../http/callers/principal.js';
import { Caller } from '../http/routes/parameter.decorators.js';
import { Audit, party } from '../platform/audit/audit.js';
import { Clock } from '../platform/clock.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty, ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/listener.decorators.js';
import {
  ApiEnum,
  ApiInteger,
  ApiOptionalString,
  ApiString,
  Nested,
  Optional,
} from '../platform/validation/validation.js';
import { SessionEndings } from '../session/session-endings.js';

class TokenInfo {
  @ApiString('The client that the token was issued for.', EXAMPLE.clientId)
  client_id!: string;

  @ApiString('The id of the customer.', EXAMPLE.entityId)
  entity_id!: string;

  @ApiInteger('The seconds until the token expires.', 28_800)
  expires_in!: number;

  @ApiString('The organization of the customer.', EXAMPLE.organizationId)
  organization_id!: string;

  @ApiOptionalString('The grant that issued the token.', 'cookie')
  gty?: string;

  @ApiOptionalString('The group of the customer; absent for a customer of the whole organization.', EXAMPLE.groupId)
  group_id?: string;

  @Optional()
  @IsBoolean()
  @ApiProperty(USER_VERIFIED, true)
  user_verified?: true;

  @Optional()
  @Nested(() => Actor)
  @ApiProperty('The agent that obtained the token (RFC 8693 §4.1); absent if no agent did.')
  act?: Actor;

  @ApiEnum(['Bearer'], 'How to send the access token (RFC 6750).')
  token_type!: 'Bearer';
}

/** Lets a customer read and end its own access token (protocol §4.11 and §4.12). */
@PublicController('v2/customer')
export class CustomerTokenController {
  constructor(
    private readonly endings: SessionEndings,
    private readonly revocationLimit: RevocationLimit,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  @Get('info')
  @ApiRoute({
    summary: 'Get the data of a customer token',
    description: 'Says which customer the bearer token is for, and how long it is valid.',
    response: TokenInfo,
    withGrantClaims: true,
  })
  info(@Caller(CustomerGuard) customer: CustomerPrincipal): TokenInfo {
    const { entityId, clientId, organizationId, claims: token } = customer;
    const { gty, group_id, user_verified, act } = token;
    return {
      client_id: clientId,
      entity_id: entityId,
      expires_in: token.exp - this.clock.seconds(),
      organization_id: organizationId,
      ...(gty !== undefined && { gty }),
      ...(group_id !== undefined && { group_id }),
      ...(user_verified && { user_verified }),
      ...(act && { act }),
      ...declaredClaimsOf(token),
      token_type: 'Bearer',
    };
  }

  @Delete('token')
  @ApiRoute({
    summary: 'End the customer token of the request, and what was made with it',
    description:
      'Ends the access tokens of the session of the bearer token, and everything that was made with them by an identity transfer. Accepts an expired token too. The browser still leads to the customer.',
    errors: ['429 temporarily_unavailable'],
  })
  async end(@Caller(EndedCustomerGuard) { claims: token, entityId }: CustomerPrincipal): Promise<object> {
    const counted = this.revocationLimit.take();
    const entries = await this.endings.endToken(token);
    counted.setEntries(entries ?? 0);
    if (entries !== undefined)
      this.audit.success('token.revoked', party('customer', entityId), party('token', token.jti));
    return {};
  }
}
