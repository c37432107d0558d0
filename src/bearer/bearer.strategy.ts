import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import type { Request, Response } from 'express';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import { type AccessTokenClaims, TokenInspection } from '../access-token/access-tokens.js';
import { inactiveToken } from '../access-token/inactive-reason.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { Descents } from './descents.js';
import { callerOf, type DescentCustomer, type NamedCaller, type Principal } from './principal.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

/**
 * Authenticates bearer tokens of agents and customers. All routes with a bearer token use it (protocol §2.6).
 *
 * passport-http-bearer would also accept a token in the body or the query. It finds none there, because Express parses
 * neither (service-http-adapter.ts).
 */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy) {
  constructor(
    private readonly tokens: TokenInspection,
    private readonly trustedIssuers: TrustedIssuerTokens,
    private readonly descents: Descents,
  ) {
    super();
  }

  /** @throws OAuthError `invalid_token` */
  async validate(token: string): Promise<Principal> {
    const isForeign = this.trustedIssuers.mayVerify(token);
    return this.principalOf(isForeign ? await this.trustedIssuers.verify(token) : await this.verifyOwnToken(token));
  }

  principalOf(caller: NamedCaller): Principal {
    return Object.assign(caller, { descent: (of?: DescentCustomer) => this.descents.textOf(caller, of) });
  }

  private async verifyOwnToken(token: string): Promise<NamedCaller> {
    const { claims, inactiveReason } = await this.tokens.inspect(token);
    if (claims) requestContext.set({ clientId: claims.client_id, organizationId: claims.organization_id });
    if (inactiveReason) throw inactiveToken(inactiveReason);
    return callerOf(claims);
  }
}

/**
 * Authenticates callers by a bearer token in the `Authorization` header only (RFC 6750 §2.1), and sets the principal as
 * the `user` of the request.
 *
 * The service never accepts a Personal Access Token (protocol §2.6). It uses the scheme `Basic`, under which
 * passport-http-bearer finds no token. The routes that read `Basic` compare it with the credentials of a client or
 * resource server.
 */
@Injectable()
export class BearerAuthentication {
  constructor(private readonly strategy: BearerStrategy) {}

  /** @throws OAuthError `invalid_token` */
  async authenticate(request: Request): Promise<Principal> {
    const { authorization = [] } = request.headersDistinct;
    if (authorization.length === 0) throw OAuthError.invalidToken('no bearer token');
    if (authorization.length > 1) throw OAuthError.invalidToken('more than one Authorization header');
    const principal = await new Promise<Principal>((resolve, reject) => {
      const finish = (error: unknown, found: Principal | false | null | undefined) => {
        if (error) reject(error);
        else if (found) resolve(found);
        else reject(OAuthError.invalidToken('no bearer token in the Authorization header'));
      };
      // Not by its name, under which passport knows one strategy per process. Passport changes the object that it gets,
      // so each request needs one of its own.
      const strategy: BearerStrategy = Object.create(this.strategy);
      passport.authenticate(strategy, { session: false }, finish)(request, request.res as Response, reject);
    });
    request.user = principal;
    return principal;
  }

  /** Sets the principal of a token that was verified already. */
  identify(request: Request, claims: AccessTokenClaims): Principal {
    const principal = this.strategy.principalOf(callerOf(claims));
    request.user = principal;
    return principal;
  }
}
