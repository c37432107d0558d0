import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { type AccessTokenClaims, TokenInspection } from '../access-token/access-tokens.js';
import { inactiveToken } from '../access-token/inactive-reason.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { Descents } from './descents.js';
import { callerOf, type DescentCustomer, type NamedCaller, type Principal } from './principal.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

declare module 'node:http' {
  interface IncomingMessage {
    /** The caller, if a bearer token has authenticated it. */
    principal?: Principal;
  }
}

/** The service never accepts a Personal Access Token, which uses the scheme `Basic` (protocol §2.6). */
const BEARER = /^Bearer ([^ ]+)$/i;

/** Reads the `Authorization` header only (RFC 6750 §2.1), for all routes with a bearer token (protocol §2.6). */
@Injectable()
export class BearerAuthentication {
  constructor(
    private readonly tokens: TokenInspection,
    private readonly trustedIssuers: TrustedIssuerTokens,
    private readonly descents: Descents,
  ) {}

  /** @throws OAuthError `invalid_token` */
  async authenticate(request: Request): Promise<Principal> {
    const { authorization = [] } = request.headersDistinct;
    if (authorization.length === 0) throw OAuthError.invalidToken('no bearer token');
    if (authorization.length > 1) throw OAuthError.invalidToken('more than one Authorization header');
    const token = BEARER.exec(authorization[0] as string)?.[1];
    if (token === undefined) throw OAuthError.invalidToken('no bearer token in the Authorization header');
    const issuer = this.trustedIssuers.issuerOf(token);
    const caller = issuer ? this.trustedIssuers.verify(token, issuer) : this.verifyOwnToken(token);
    return this.setPrincipal(request, await caller);
  }

  /** @param claims of a token that was verified already */
  identify(request: Request, claims: AccessTokenClaims): Principal {
    return this.setPrincipal(request, callerOf(claims));
  }

  private setPrincipal(request: Request, caller: NamedCaller): Principal {
    const descent = (of?: DescentCustomer) => this.descents.textOf(caller, of);
    request.principal = Object.assign(caller, { descent });
    return request.principal;
  }

  private async verifyOwnToken(token: string): Promise<NamedCaller> {
    const { claims, inactiveReason } = await this.tokens.inspect(token);
    if (claims) requestContext.set({ clientId: claims.client_id, organizationId: claims.organization_id });
    if (inactiveReason) throw inactiveToken(inactiveReason);
    return callerOf(claims);
  }
}
