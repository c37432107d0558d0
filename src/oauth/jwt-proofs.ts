import { Injectable } from '@nestjs/common';
import { Configuration } from '../platform/configuration/configuration.js';
import { isOfOtherCallers } from '../platform/configuration/issuers.js';
import { isIdText } from '../platform/validation/text-rules.js';
import { ASSERTION_ALGORITHMS, ForeignJwts, InvalidJwt } from './foreign-jwts.js';
import type { JwtIssuer } from './jwt-issuer.js';
import { OAuthError } from './oauth-error.js';

/** What a valid JWT of another issuer says. */
export interface ProvenJwt {
  issuer: string;
  /** The subject: 1 to 255 characters. */
  sub: string;
  /** Names the JWT among those of its issuer: 1 to 255 characters. */
  jti: string;
  expiresAt: Date;
  /** All claims. The issuer chooses their types. */
  claims: Readonly<Record<string, unknown>>;
}

/** Many issuers omit `typ` or send `JWT`. Other types are rejected (RFC 8725 §3.11). */
const ACCEPTED_TYPES = ['', 'jwt', 'authorization-grant+jwt'];

/** Verifies the JWTs by which issuers prove something to grants (RFC 7523 §3, RFC 8725). */
@Injectable()
export class JwtProofs {
  private readonly audience: string[];

  /** @internal */
  constructor(
    private readonly jwts: ForeignJwts,
    private readonly configuration: Configuration,
  ) {
    const { AUTH_URL } = configuration;
    this.audience = [AUTH_URL, `${AUTH_URL}/v2/customer/token`];
  }

  /**
   * Verifies signature, algorithm, type, issuer, audience and times of a JWT, which needs `iss`, `sub`, `aud`, `exp`
   * and `jti`. It does not detect a second use: count it with `UseCounter`.
   *
   * @throws OAuthError `invalid_grant`; 503 while the keys of the issuer cannot be fetched
   */
  async verify(token: string, issuer: JwtIssuer): Promise<ProvenJwt> {
    const { issuer: iss, audience = this.audience, ...keys } = issuer;
    const rules = { keys, issuer: iss, audience, algorithms: ASSERTION_ALGORITHMS, types: ACCEPTED_TYPES };
    const requiredClaims = ['iss', 'sub', 'aud', 'exp', 'jti'];
    const claims = await this.jwts.verify(token, { ...rules, requiredClaims }).catch((error) => {
      throw error instanceof InvalidJwt ? invalidJwt(error.message) : error;
    });
    const { sub, jti, aud, exp } = claims;
    if ([aud].flat().some((each) => isOfOtherCallers(this.configuration, iss, each)))
      throw invalidJwt('its issuer is that of agents or operators');
    if (!isIdText(sub)) throw invalidJwt('sub is no text of 1 to 255 characters');
    if (!isIdText(jti)) throw invalidJwt('jti is no text of 1 to 255 characters');
    return { issuer: iss, sub, jti, expiresAt: new Date((exp as number) * 1000), claims };
  }
}

function invalidJwt(reason: string): OAuthError {
  return OAuthError.invalidGrant(`jwt: ${reason}`);
}
