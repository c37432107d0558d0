import { randomUUID, sign, verify } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { rawSignature } from './ecdsa-signature.js';
import { SigningKeys } from './signing-keys.js';
import type { Audience, TokenLineage } from './token-lineage.js';

/** The claims of an access token (RFC 9068 §2.2, protocol §3.3). Times are in seconds since 1970. */
export interface AccessTokenClaims extends Partial<TokenLineage> {
  iss: string;
  sub: string;
  aud: Audience;
  client_id: string;
  organization_id: string;
  iat: number;
  exp: number;
  jti: string;
  /** Only in agent tokens: the granted scopes, separated by spaces. */
  scope?: string;
}

export type IssuableClaims = Omit<AccessTokenClaims, 'iss' | 'iat' | 'exp' | 'jti'>;

/** How far the clock of the issuing process may be ahead of the clock of this process. */
const CLOCK_SKEW_SECONDS = 30;

/** Issues and verifies access tokens of the form `REGION:JWS`. Only this folder depends on that form. */
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

  /** Issues a token that is valid from now on for `ttlSeconds`. */
  issue(claims: IssuableClaims, ttlSeconds: number, jti: string = randomUUID()): string {
    const { privateKey, header } = this.keys.current();
    const iat = this.clock.seconds();
    const payload: AccessTokenClaims = { iss: this.issuer, ...claims, iat, exp: iat + ttlSeconds, jti };
    const signed = `${header}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`;
    const signature = rawSignature(sign('sha256', Buffer.from(signed), privateKey));
    return `${this.prefix}${signed}.${signature.toString('base64url')}`;
  }

  /**
   * Verifies the form, signature, issuer and times of a token. The method does not check whether the token has ended.
   *
   * @throws OAuthError `invalid_token`
   */
  verify(token: string): AccessTokenClaims {
    // The colon of the prefix is compared as it is, so a token with `%3A` is invalid (protocol §2.6).
    if (!token.startsWith(this.prefix)) throw OAuthError.invalidToken('not a token of this region');
    const segments = token.slice(this.prefix.length).split('.');
    if (segments.length !== 3) throw OAuthError.invalidToken('not a JWS');
    const [header, payload, signature] = segments as [string, string, string];
    const key = this.keys.keyByHeader(header);
    if (!key) throw OAuthError.invalidToken('the header matches no key');
    const bytes = Buffer.from(signature, 'base64url');
    // Other base64url texts decode to the same bytes. Only the canonical text is valid, so that a token has one form.
    if (bytes.toString('base64url') !== signature) throw OAuthError.invalidToken('signature not canonical');
    const publicKey = { key: key.publicKey, dsaEncoding: 'ieee-p1363' } as const;
    if (!verify('sha256', Buffer.from(`${header}.${payload}`), publicKey, bytes)) {
      throw OAuthError.invalidToken('invalid signature');
    }
    return this.assertCurrent(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  }

  /** The claims that `verify` returns; `undefined` if the token is invalid. */
  claimsIfValid(token: string): AccessTokenClaims | undefined {
    try {
      return this.verify(token);
    } catch (error) {
      if (error instanceof OAuthError) return undefined;
      throw error;
    }
  }

  private assertCurrent(claims: AccessTokenClaims): AccessTokenClaims {
    const now = this.clock.seconds();
    if (claims.iss !== this.issuer) throw OAuthError.invalidToken('wrong issuer');
    if (!(now < claims.exp)) throw OAuthError.invalidToken('expired');
    if (!(claims.iat <= now + CLOCK_SKEW_SECONDS)) throw OAuthError.invalidToken('issued in the future');
    return claims;
  }
}
