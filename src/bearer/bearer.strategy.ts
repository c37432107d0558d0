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

/** The one way in for a bearer, of an agent or a customer (protocol §2.6). */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy) {
  /** Passport knows strategies by name for the whole process; of two services in one, as in a test, each has its own. */
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
      : await this.ofOurs(token);
    const { clientId, organizationId } = principal;
    // another issuer's client is nobody's that this service knows
    requestContext.set({ organizationId, ...(!('foreign' in principal && principal.foreign) && { clientId }) });
    return principal;
  }

  private async ofOurs(token: string): Promise<Principal> {
    const claims = this.tokens.verify(token);
    if (await this.denylist.hasEnded(claims)) throw OAuthError.invalidToken('ended before its time');
    return principalOf(claims);
  }
}
