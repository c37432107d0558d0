import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard, PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import { Strategy } from 'passport-http-bearer';
import type { AccessTokenClaims } from '../../access-token/access-tokens.js';
import { inactiveToken } from '../../access-token/inactive-reason.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { type ProofCustomer, Proofs } from '../../session/proofs.js';
import { TokenInspection } from '../../session/token-validity.js';
import { authorizationOf } from './authorization.js';
import { callerOf, type NamedCaller, type Principal } from './principal.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

/** Not the default name `bearer`, so that the strategy of an extension cannot replace this one. */
const STRATEGY = 'customer-authorization-service';

/**
 * Finds the bearer token of a request. Passport knows one strategy of a name per process, and several applications may
 * run in one process. So the strategy has no services, and `BearerAuthGuard` of the application verifies the token.
 *
 * passport-http-bearer would also accept a token in the body or the query, but it gets only the header. The service
 * never accepts a Personal Access Token (protocol §2.6). It uses the scheme `Basic`, under which passport-http-bearer
 * finds no token.
 */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, STRATEGY) {
  validate(token: string): string {
    return token;
  }
}

/**
 * The part of a request that passport gets. V8 does not free the objects that passport's functions refer to until it
 * marks the whole heap (docs/performance.md).
 */
interface PassportRequest {
  headers: { authorization: string };
  user?: Principal;
}

/** All that passport's guard asks of a context. */
function contextOf(request: PassportRequest): ExecutionContext {
  const http = { getRequest: () => request, getResponse: () => undefined };
  return { switchToHttp: () => http } as unknown as ExecutionContext;
}

/** Reads the `Authorization` header only (RFC 6750 §2.1), for all routes with a bearer token (protocol §2.6). */
@Injectable()
export class BearerAuthGuard extends AuthGuard(STRATEGY) {
  constructor(
    private readonly tokens: TokenInspection,
    private readonly trustedIssuers: TrustedIssuerTokens,
    private readonly proofs: Proofs,
  ) {
    super();
  }

  /** @throws OAuthError `invalid_token` */
  override async canActivate(context: ExecutionContext): Promise<boolean> {
    await this.authenticate(context.switchToHttp().getRequest<Request>());
    return true;
  }

  /** @throws OAuthError `invalid_token` */
  async authenticate(request: Request): Promise<Principal> {
    const authorization = authorizationOf(request);
    if (!authorization) throw OAuthError.missingToken();
    const { bearer, isRepeated } = authorization;
    if (isRepeated) throw OAuthError.invalidToken('more than one Authorization header');
    const passportRequest: PassportRequest = { headers: { authorization: `Bearer ${bearer ?? ''}` } };
    await super.canActivate(contextOf(passportRequest));
    request.user = passportRequest.user;
    return request.user as Principal;
  }

  /** Passport calls it with the token that the strategy has found. The result becomes the `user` of the request. */
  override handleRequest<User = Promise<Principal>>(error: unknown, token: string | false): User;
  override async handleRequest(error: unknown, token: string | false): Promise<Principal> {
    if (error) throw error;
    if (!token) throw OAuthError.invalidToken('no bearer token in the Authorization header');
    const issuer = this.trustedIssuers.issuerOf(token);
    const caller = issuer ? this.trustedIssuers.verify(token, issuer) : this.verifyOwnToken(token);
    return this.principalOf(await caller);
  }

  /** @param claims of a token that was verified already */
  identify(request: Request, claims: AccessTokenClaims): Principal {
    const principal = this.principalOf(callerOf(claims));
    request.user = principal;
    return principal;
  }

  private principalOf(caller: NamedCaller): Principal {
    const proof = (customer?: ProofCustomer) =>
      caller.kind === 'customer' ? this.proofs.ofCustomer(caller.claims) : this.proofs.ofAgent(caller, customer);
    return Object.assign(caller, { proof });
  }

  private async verifyOwnToken(token: string): Promise<NamedCaller> {
    const { claims, inactiveReason } = await this.tokens.inspect(token);
    if (claims) requestContext.set({ clientId: claims.client_id, organizationId: claims.organization_id });
    if (inactiveReason) throw inactiveToken(inactiveReason);
    return callerOf(claims);
  }
}
