import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import { AccessTokens } from '../access-token/access-tokens.js';
import { Denylist } from '../access-token/denylist.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { type Principal, principalOf } from './principal.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

/** Authenticates bearer tokens of agents and customers. All routes with a bearer token use it (protocol §2.6). */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy) {
  /** Unique, because passport registers strategies per process, and tests run several services in one process. */
  override readonly name = `bearer-${randomUUID()}`;

  constructor(
    private readonly tokens: AccessTokens,
    private readonly denylist: Denylist,
    private readonly trustedIssuers: TrustedIssuerTokens,
  ) {
    super();
    passport.use(this.name, this);
  }

  /** @throws OAuthError `invalid_token` */
  async validate(token: string): Promise<Principal> {
    const principal = this.trustedIssuers.mayVerify(token)
      ? await this.trustedIssuers.verify(token)
      : await this.verifyOwnToken(token);
    const { clientId, organizationId } = principal;
    const isFromTrustedIssuer = principal.kind === 'agent' && principal.isFromTrustedIssuer;
    // The client of a trusted issuer's token is not in the registry, so the log gets no client id.
    requestContext.set({ organizationId, ...(!isFromTrustedIssuer && { clientId }) });
    return principal;
  }

  private async verifyOwnToken(token: string): Promise<Principal> {
    const claims = this.tokens.verify(token);
    if (await this.denylist.hasEnded(claims)) throw OAuthError.invalidToken('the token has ended');
    return principalOf(claims);
  }
}
