import { ArrayMaxSize, ArrayNotEmpty, IsArray, IsString, Length } from 'class-validator';
import type { JSONWebKeySet } from 'jose';
import { Optional } from '../platform/validation/validation.js';
import { ArePublicKeys, IsKeySetUrl } from './key-rules.js';

/** Settings in the registry for the issuer of JWTs that prove something to a grant. */
export class JwtIssuer {
  /** The `iss` of its JWTs, which must match exactly. */
  @IsString()
  @Length(1, 255)
  issuer!: string;

  /** The public keys. Either `jwks` or `jwks_uri` is required. */
  @ArePublicKeys({ unless: ['jwks_uri'] })
  jwks?: JSONWebKeySet;

  /** The URL of the public keys (RFC 7517 §5). */
  @Optional()
  @IsKeySetUrl()
  jwks_uri?: string;

  /** The accepted values of `aud`. If omitted: AUTH_URL, and the URL of the token endpoint. */
  @Optional()
  @IsArray()
  @ArrayNotEmpty()
  @ArrayMaxSize(10)
  @IsString({ each: true })
  @Length(1, 255, { each: true })
  audience?: string[];
}
