import { Delete, Get, Req, UseGuards } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsIn, IsInt, IsString, ValidateNested } from 'class-validator';
import type { Request } from 'express';
import { Denylist } from '../access-token/denylist.js';
import { declaredClaimsOf } from '../access-token/reserved-claims.js';
import { Actor } from '../access-token/token-lineage.js';
import { Audit } from '../audit/audit.js';
import { BearerGuard } from '../bearer/bearer.guard.js';
import { assertCustomer, type CustomerPrincipal } from '../bearer/principal.js';
import { Optional } from '../oauth/parameters.js';
import { Clock } from '../platform/clock.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { Registry } from '../registry/registry.js';

/** Describes the customer token of the request. */
class TokenInfo {
  @IsString()
  access_token: string;

  @IsString()
  client_id: string;

  @IsString()
  entity_id: string;

  /** Seconds until the token expires. */
  @IsInt()
  expires_in: number;

  @IsString()
  organization_id: string;

  /** The name of the grant that gave the token; absent in tokens of release 1. */
  @Optional()
  @IsString()
  gty?: string;

  /** Only for a customer of a group. */
  @Optional()
  @IsString()
  group_id?: string;

  /** The agent that obtained the token (RFC 8693 §4.1). */
  @Optional()
  @ValidateNested()
  @Type(() => Actor)
  act?: Actor;

  @IsIn(['Bearer'])
  token_type: 'Bearer';
}

/** Lets a customer read and end its own access token (protocol §4.11 and §4.12). */
@PublicController('v2/customer')
@UseGuards(BearerGuard)
export class CustomerTokenController {
  constructor(
    private readonly registry: Registry,
    private readonly denylist: Denylist,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  @Get('info')
  @ApiRoute({
    summary: 'Get the data of a customer token',
    response: TokenInfo,
    withGrantClaims: true,
    errorStatuses: [400],
  })
  info(@Req() request: Request): TokenInfo {
    const { entityId, clientId, organizationId, claims: token } = this.customerOf(request);
    const { gty, group_id, act } = token;
    return {
      access_token: (request.headers.authorization as string).replace(/^\S+ +/, ''),
      client_id: clientId,
      entity_id: entityId,
      expires_in: token.exp - this.clock.seconds(),
      organization_id: organizationId,
      ...(gty !== undefined && { gty }),
      ...(group_id !== undefined && { group_id }),
      ...(act && { act }),
      ...declaredClaimsOf(token),
      token_type: 'Bearer',
    };
  }

  @Delete('token')
  @ApiRoute({ summary: 'End the customer token of the request, and its descendants', errorStatuses: [400] })
  async end(@Req() request: Request): Promise<object> {
    const { claims: token, entityId } = this.customerOf(request);
    await this.denylist.revokeToken(token);
    const actor = { kind: 'customer', id: entityId } as const;
    this.audit.record({ event: 'token.revoked', outcome: 'success', actor, subject: { kind: 'token', id: token.jti } });
    return {};
  }

  private customerOf({ headers }: Request): CustomerPrincipal {
    const customer = assertCustomer(requestContext.required().principal);
    if (headers.origin !== undefined) this.registry.clientCalling(customer.clientId, headers.origin);
    return customer;
  }
}
