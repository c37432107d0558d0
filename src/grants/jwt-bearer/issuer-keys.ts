import { Injectable } from '@nestjs/common';
import type { JWTVerifyGetKey } from 'jose';
import { Clock, OAuthError } from '../../public/grant.js';
import type { JwtBearerSettings } from './jwt-bearer.settings.js';
import { isPublicKeySet } from './public-keys.js';

/** Milliseconds: how long keys are kept, how often an unknown key makes us ask for them, how long an answer may take. */
const FETCHED = { cacheMaxAge: 600_000, cooldownDuration: 60_000, timeoutDuration: 1_000 };
/** Milliseconds in which an issuer that failed is not asked again. */
const PAUSE = 1_000;
/** Bytes; more than 20 RSA keys with their certificates. */
const LARGEST = 64 * 1024;

export type Jose = typeof import('jose');

/** The public keys of the sign-in systems that organizations have. */
@Injectable()
export class IssuerKeys {
  private readonly inline = new WeakMap<object, JWTVerifyGetKey>();
  private readonly fetched = new Map<string, JWTVerifyGetKey>();

  constructor(private readonly clock: Clock) {}

  /**
   * What finds the key that an assertion names. No header of the assertion is followed to a key of its own.
   *
   * Finding throws OAuthError `temporarily_unavailable` while the keys cannot be had.
   */
  of(jose: Jose, { jwks, jwks_uri }: JwtBearerSettings): JWTVerifyGetKey {
    if (jwks_uri === undefined) return this.ofSet(jose, jwks as NonNullable<typeof jwks>);
    let keys = this.fetched.get(jwks_uri);
    if (!keys) {
      keys = this.from(jose, new URL(jwks_uri));
      this.fetched.set(jwks_uri, keys);
    }
    return keys;
  }

  private ofSet({ createLocalJWKSet }: Jose, jwks: NonNullable<JwtBearerSettings['jwks']>): JWTVerifyGetKey {
    const keys = this.inline.get(jwks) ?? createLocalJWKSet(jwks);
    this.inline.set(jwks, keys);
    return keys;
  }

  private from({ createRemoteJWKSet, customFetch, errors }: Jose, uri: URL): JWTVerifyGetKey {
    let failedAt = Number.NEGATIVE_INFINITY;
    const fetchKeys = async (url: string, options: object) => {
      if (Math.abs(this.clock.now() - failedAt) < PAUSE) throw new Error('it failed a moment ago');
      try {
        return await fetchKeySet(url, options);
      } catch (error) {
        failedAt = this.clock.now();
        throw error;
      }
    };
    const keys = createRemoteJWKSet(uri, { ...FETCHED, [customFetch]: fetchKeys });
    return async (header, token) => {
      try {
        return await keys(header, token);
      } catch (error) {
        if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) throw error;
        throw OAuthError.unavailable(error);
      }
    };
  }
}

/** An answer of 200 whose whole body has come and is a set of public keys; redirects are not followed (jose asks so). */
async function fetchKeySet(url: string, options: object): Promise<Response> {
  const response = await fetch(url, options);
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the issuer answered ${response.status}`);
  }
  const keySet: unknown = JSON.parse(await textOf(response));
  if (!isPublicKeySet(keySet)) throw new Error('the issuer answered something else than public keys');
  return Response.json(keySet);
}

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > LARGEST) throw new Error(`the issuer answered more than ${LARGEST} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
