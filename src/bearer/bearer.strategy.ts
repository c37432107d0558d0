import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import passport from 'passport';
import { Strategy } from 'passport-http-bearer';
import { inactiveToken } from '../access-token/inactive-reason.js';
import { TokenInspection } from '../access-token/token-inspection.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { Descents } from './descents.js';
import { callerOf, type DescentCustomer, type NamedCaller, type Principal } from './principal.js';
import { TrustedIssuerTokens } from './trusted-issuer-tokens.js';

/** Authenticates bearer tokens of agents and customers. All routes with a bearer token use it (protocol §2.6). */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy) {
  /** Unique, because passport registers strategies per process, and tests run several services in one process. */
  override readonly name = `bearer-${randomUUID()}`;

  constructor(
    private readonly tokens: TokenInspection,
    private readonly trustedIssuers: TrustedIssuerTokens,
    private readonly descents: Descents,
  ) {
    super();
    passport.use(this.name, this);
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
