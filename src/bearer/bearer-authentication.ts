import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import passport from 'passport';
import type { AccessTokenClaims } from '../access-token/access-tokens.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { BearerStrategy } from './bearer.strategy.js';
import { callerOf, type Principal } from './principal.js';

/**
 * The only part of a request that passport gets. passport-http-bearer would otherwise also read the body and the query.
 */
class BearerHeader {
  readonly headers: { authorization?: string };

  constructor(request: Request) {
    const [authorization, ...more] = request.headersDistinct.authorization ?? [];
    if (authorization === undefined) throw OAuthError.invalidToken('no bearer token');
    if (more.length > 0) throw OAuthError.invalidToken('more than one Authorization header');
    this.headers = { authorization };
  }
}

/**
 * Authenticates callers by a bearer token in the `Authorization` header only (RFC 6750 §2.1).
 *
 * The service never accepts a Personal Access Token (protocol §2.6). It uses the scheme `Basic`, under which
 * passport-http-bearer finds no token. The routes that read `Basic` compare it with the credentials of a client or
 * resource server.
 */
@Injectable()
export class BearerAuthentication {
  constructor(private readonly strategy: BearerStrategy) {}

  /**
   * Sets the `principal` of the request context.
   *
   * @throws OAuthError `invalid_token`
   */
  async authenticate(request: Request): Promise<Principal> {
    const header = new BearerHeader(request);
    const principal = await new Promise<Principal>((resolve, reject) => {
      const finish = (error: unknown, found: Principal | false | null | undefined) => {
        if (error) reject(error);
        else if (found) resolve(found);
        else reject(OAuthError.invalidToken('no bearer token in the Authorization header'));
      };
      passport.authenticate(this.strategy.name, { session: false }, finish)(header, request.res as Response, reject);
    });
    requestContext.set({ principal });
    return principal;
  }

  /** The principal of a token that was verified already. */
  identify(claims: AccessTokenClaims): Principal {
    const principal = this.strategy.principalOf(callerOf(claims));
    requestContext.set({ principal });
    return principal;
  }
}
