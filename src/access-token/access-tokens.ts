import { randomUUID, sign, verify } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { rawSignature } from './ecdsa-signature.js';
import { SigningKeys } from './signing-keys.js';
import type { Audience, TokenLineage } from './token-lineage.js';

/** The claims of our access tokens (RFC 9068 §2.2). Times are in seconds since 1970. */
export interface AccessTokenClaims extends Partial<TokenLineage> {
  iss: string;
  sub: string;
  aud: Audience;
  client_id: string;
  organization_id: string;
  iat: number;
  exp: number;
  jti: string;
  /** Of agents only: what the agent has granted, separated by spaces. */
  scope?: string;
}

export type IssuableClaims = Omit<AccessTokenClaims, 'iss' | 'iat' | 'exp' | 'jti'>;

/** Seconds that the clock of the issuing process may be ahead of ours. */
const CLOCK_SKEW_SECONDS = 30;

/** Issues and verifies access tokens: `REGION:JWS`. Only this folder knows their form. */
@Injectable()
export class AccessTokens {
  private readonly issuer: string;
  private readonly prefix: string;

  constructor(
    configuration: Configuration,
    private readonly keys: SigningKeys,
    private readonly clock: Clock,
  ) {
    this.issuer = configuration.AUTH_URL;
    this.prefix = `${configuration.TOKEN_REGION}:`;
  }

  /** A token that is valid from now on for `ttl` seconds. */
  issue(claims: IssuableClaims, ttl: number, jti: string = randomUUID()): string {
    const { privateKey, header } = this.keys.current();
    const iat = this.clock.seconds();
    const payload: AccessTokenClaims = { iss: this.issuer, ...claims, iat, exp: iat + ttl, jti };
    const signed = `${header}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`;
    const signature = rawSignature(sign('sha256', Buffer.from(signed), privateKey));
    return `${this.prefix}${signed}.${signature.toString('base64url')}`;
  }

  /**
   * The claims of a token that we have signed and that is valid now. Whether it was revoked is not looked at.
   *
   * @throws OAuthError `invalid_token`
   */
  verify(token: string): AccessTokenClaims {
    if (!token.startsWith(this.prefix)) throw OAuthError.invalidToken('not a token of this region');
    const segments = token.slice(this.prefix.length).split('.');
    if (segments.length !== 3) throw OAuthError.invalidToken('not a JWS');
    const [header, payload, signature] = segments as [string, string, string];
    const key = this.keys.keyByHeader(header);
    if (!key) throw OAuthError.invalidToken('header of no key of ours');
    const bytes = Buffer.from(signature, 'base64url');
    // the same bytes spelt otherwise would be the same token under another name
    if (bytes.toString('base64url') !== signature) throw OAuthError.invalidToken('signature not canonical');
    const publicKey = { key: key.publicKey, dsaEncoding: 'ieee-p1363' } as const;
    if (!verify('sha256', Buffer.from(`${header}.${payload}`), publicKey, bytes)) {
      throw OAuthError.invalidToken('signature does not fit');
    }
    return this.valid(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  }

  /** The claims of a token as `verify` returns them; `undefined` if it is not valid. */
  claimsIfValid(token: string): AccessTokenClaims | undefined {
    try {
      return this.verify(token);
    } catch (error) {
      if (error instanceof OAuthError) return undefined;
      throw error;
    }
  }

  private valid(claims: AccessTokenClaims): AccessTokenClaims {
    const now = this.clock.seconds();
    if (claims.iss !== this.issuer) throw OAuthError.invalidToken('another issuer');
    if (!(now < claims.exp)) throw OAuthError.invalidToken('expired');
    if (!(claims.iat <= now + CLOCK_SKEW_SECONDS)) throw OAuthError.invalidToken('issued in the future');
    return claims;
  }
}
