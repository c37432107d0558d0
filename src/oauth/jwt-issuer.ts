import { createPublicKey, type JsonWebKey } from 'node:crypto';
import {
  ArrayMaxSize,
  ArrayNotEmpty,
  IsArray,
  IsString,
  Length,
  ValidateBy,
  ValidateIf,
  type ValidationArguments,
} from 'class-validator';
import type { JSONWebKeySet } from 'jose';
import { Optional } from '../platform/validation/validation.js';
import { isPublicJwk } from './remote-key-set.js';

/** Settings in the registry for the issuer of JWTs that prove something to a grant. */
export class JwtIssuer {
  /** The `iss` of its JWTs, which must match exactly. */
  @IsString()
  @Length(1, 255)
  issuer!: string;

  /** The public keys. Either `jwks` or `jwks_uri` is required. */
  @ValidateIf((settings: JwtIssuer, value) => value !== undefined || settings.jwks_uri === undefined)
  @ArePublicKeys()
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

function ArePublicKeys(): PropertyDecorator {
  const violationOf = (value: unknown, settings: object) =>
    'jwks_uri' in settings ? 'must not be set together with jwks_uri' : keySetViolation(value);
  return ValidateBy({
    name: 'arePublicKeys',
    validator: {
      validate: (value, context) => violationOf(value, context?.object ?? {}) === undefined,
      defaultMessage: (context?: ValidationArguments) => violationOf(context?.value, context?.object ?? {}) ?? '',
    },
  });
}

/** Requires https, so that an attacker on the network cannot replace the keys. Loopback URLs may use http. */
function IsKeySetUrl(): PropertyDecorator {
  return ValidateBy({
    name: 'isKeySetUrl',
    validator: { validate: isKeySetUrl, defaultMessage: () => 'must be an https URL without user and fragment' },
  });
}

function isKeySetUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, hostname, username, password, hash } = new URL(value);
  if (username !== '' || password !== '' || hash !== '') return false;
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback);
}

const MAX_KEYS = 20;
const MIN_RSA_BITS = 2048;

function keySetViolation(value: unknown): string | undefined {
  const keys = (value as { keys?: unknown } | undefined)?.keys;
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > MAX_KEYS)
    return `must be a JWK Set of 1 to ${MAX_KEYS} keys`;
  const violations = keys.map((key) => keyViolation(key));
  const firstInvalid = violations.findIndex((violation) => violation !== undefined);
  if (firstInvalid >= 0) return `keys[${firstInvalid}] ${violations[firstInvalid]}`;
  const kids = keys.map(({ kid }) => kid);
  return new Set(kids).size < kids.length ? 'must have keys with different kid' : undefined;
}

function keyViolation(key: unknown): string | undefined {
  if (typeof key !== 'object' || key === null) return 'must be a JWK';
  if (!isPublicJwk(key)) return 'must be a public key, without its private part';
  const { kid, use } = key as { kid?: unknown; use?: unknown };
  if (typeof kid !== 'string' || kid === '') return 'must have a kid';
  if (use !== undefined && use !== 'sig') return 'must be for signatures';
  return isUsable(key) ? undefined : 'must be EC P-256 or P-384, RSA of 2048 bits or more, or Ed25519';
}

function isUsable(key: object): boolean {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey({ key: key as JsonWebKey, format: 'jwk' });
    const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails ?? {};
    if (asymmetricKeyType === 'ec') return ['prime256v1', 'secp384r1'].includes(namedCurve);
    return asymmetricKeyType === 'ed25519' || (asymmetricKeyType === 'rsa' && modulusLength >= MIN_RSA_BITS);
  } catch {
    return false;
  }
}
