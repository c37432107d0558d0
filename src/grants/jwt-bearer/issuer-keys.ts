import { Injectable } from '@nestjs/common';
import type { JWTVerifyGetKey } from 'jose';
import { Clock, RemoteKeySet } from '../../public/grant.js';
import type { JwtBearerSettings } from './jwt-bearer.settings.js';

export type Jose = typeof import('jose');

/** The public keys of the sign-in systems of organizations. */
@Injectable()
export class IssuerKeys {
  private readonly inline = new WeakMap<object, JWTVerifyGetKey>();
  private readonly remote = new Map<string, RemoteKeySet>();

  constructor(private readonly clock: Clock) {}

  /**
   * Returns a function that finds the key of an assertion by its `kid`.
   *
   * The function rejects with OAuthError `temporarily_unavailable` if the keys cannot be fetched.
   */
  of(jose: Jose, { jwks, jwks_uri }: JwtBearerSettings): JWTVerifyGetKey {
    return jwks_uri === undefined ? this.ofSet(jose, jwks as NonNullable<typeof jwks>) : this.ofUri(jwks_uri).getKey;
  }

  private ofSet({ createLocalJWKSet }: Jose, jwks: NonNullable<JwtBearerSettings['jwks']>): JWTVerifyGetKey {
    const keys = this.inline.get(jwks) ?? createLocalJWKSet(jwks);
    this.inline.set(jwks, keys);
    return keys;
  }

  private ofUri(jwksUri: string): RemoteKeySet {
    const keys = this.remote.get(jwksUri) ?? new RemoteKeySet(jwksUri, this.clock);
    this.remote.set(jwksUri, keys);
    return keys;
  }
}
