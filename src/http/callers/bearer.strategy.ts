import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AuthGuard, PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import { Strategy } from 'passport-http-bearer';
import type { AccessTokenClaims } from '../../access-token/access-tokens.js';
import { inactiveToken } from '../../access-token/inactive-reason.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { type ProofCustomer, Proofs } from '../../redemption/proofs.js';
import { TokenInspection } from '../../session/token-validity.js';
import { authorizationOf } from './authorization.js';
import {
  callerOf,
  factsOf,
  factsOfClaims,
  type NamedCaller,
  type Principal,
  principalOf,
  recordCaller,
} from './principal.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

/** Not the default name `bearer`, so that the strategy of an extension cannot replace this one. */
const STRATEGY = 'customer-authorization-service';

/**
 * Finds out who has sent a bearer token. The service never accepts a Personal Access Token (protocol §2.6): it uses the
 * scheme `Basic`, under which there is no bearer token.
 */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, STRATEGY) {
  constructor(
    private readonly tokens: TokenInspection,
    private readonly trustedIssuers: TrustedIssuerTokens,
    private readonly proofs: Proofs,
  ) {
    super();
  }

  /**
   * passport-http-bearer gets only the header (RFC 6750 §2.1). It would also accept a token in the body or the query.
   */
  override authenticate(request: Request): void {
    const headers = { authorization: `Bearer ${bearerTokenOf(request)}` };
    super.authenticate({ headers } as Request);
  }

  /** The result becomes the `user` of the request. @throws OAuthError `invalid_token` */
  async validate(token: string): Promise<Principal> {
    const issuer = this.trustedIssuers.issuerOf(token);
    if (issuer) return this.withProof(await this.trustedIssuers.verify(token, issuer));
    const { claims, inactiveReason } = await this.tokens.inspect(token);
    if (inactiveReason) throw inactiveToken(inactiveReason).about(claims ? factsOfClaims(claims) : {});
    return this.principalOf(claims);
  }

  /** @param claims of a token of this service whose signature is valid */
  principalOf(claims: AccessTokenClaims): Principal {
    return this.withProof(callerOf(claims));
  }

  private withProof(caller: NamedCaller): Principal {
    const proof = (customer?: ProofCustomer) =>
      caller.kind === 'customer' ? this.proofs.ofCustomer(caller.claims) : this.proofs.ofAgent(caller, customer);
    return Object.assign(caller, { proof });
  }
}

/** @throws OAuthError `invalid_token` unless the request has one `Authorization` header, with a bearer token */
function bearerTokenOf(request: Request): string {
  const authorization = authorizationOf(request);
  if (!authorization) throw OAuthError.missingToken();
  const { bearer, isRepeated } = authorization;
  if (isRepeated) throw OAuthError.invalidToken('more than one Authorization header');
  if (bearer === undefined) throw OAuthError.invalidToken('no bearer token in the Authorization header');
  return bearer;
}

/** Admits every caller with a valid bearer token. Passport puts the caller on the request. */
@Injectable()
export class BearerAuthGuard extends AuthGuard(STRATEGY) {
  override async canActivate(context: ExecutionContext): Promise<boolean> {
    await super.canActivate(context);
    recordCaller(factsOf(principalOf(context.switchToHttp().getRequest()) as Principal));
    return true;
  }
}
