import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import type { Request } from 'express';
import { OAuthError } from '../oauth/oauth-error.js';
import { BearerStrategy } from './bearer.strategy.js';
import type { Principal } from './principal.js';

/** What the strategy sees of a request: passport-http-bearer would take a token from the body or the query as well. */
class BearerHeader {
  readonly headers: { authorization?: string };

  constructor(private readonly request: Request) {
    const [authorization, ...more] = request.headersDistinct.authorization ?? [];
    if (authorization === undefined) throw OAuthError.invalidToken('no bearer');
    if (more.length > 0) throw OAuthError.invalidToken('more than one Authorization header');
    this.headers = { authorization };
  }

  /** Where passport leaves what the strategy found. */
  set user(principal: Principal) {
    this.request.principal = principal;
  }
}

declare module 'express-serve-static-core' {
  interface Request {
    /** Who calls; set by the bearer guard. */
    principal?: Principal;
  }
}

/** Lets in a request whose `Authorization` header carries a valid bearer, and nothing else (RFC 6750 section 2.1). */
@Injectable()
export class BearerGuard extends AuthGuard() {
  constructor(strategy: BearerStrategy) {
    super({ defaultStrategy: strategy.name });
  }

  override getRequest(context: ExecutionContext): BearerHeader {
    return new BearerHeader(context.switchToHttp().getRequest());
  }

  /** @throws OAuthError `invalid_token` */
  override handleRequest<Found = Principal>(error: unknown, principal: Found | false): Found {
    if (error) throw error;
    if (!principal) throw OAuthError.invalidToken('no bearer in the Authorization header');
    return principal;
  }
}
