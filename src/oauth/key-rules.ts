import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { applyDecorators } from '@nestjs/common';
import { ValidateBy, ValidateIf, type ValidationArguments } from 'class-validator';
import { isLoopback } from '../platform/validation/url-rules.js';
import { rule } from '../platform/validation/validation.js';
import { isPublicJwk, signatureKeys } from './key-sources.js';

/** A JWK Set, which is required if all members of `unless` are absent, and rejected if one is present. */
export function ArePublicKeys({ unless = [] }: { unless?: string[] } = {}): PropertyDecorator {
  const presentIn = (settings: object) => unless.find((name) => Reflect.get(settings, name) !== undefined);
  const violationOf = (value: unknown, settings: object = {}) => {
    const other = presentIn(settings);
    return other === undefined ? keySetViolation(value) : `must not be set together with ${other}`;
  };
  const isChecked = (settings: object, value: unknown) => value !== undefined || presentIn(settings) === undefined;
  return applyDecorators(
    ...(unless.length > 0 ? [ValidateIf(isChecked)] : []),
    ValidateBy({
      name: 'arePublicKeys',
      validator: {
        validate: (value, context) => violationOf(value, context?.object) === undefined,
        defaultMessage: (context?: ValidationArguments) => violationOf(context?.value, context?.object) ?? '',
      },
    }),
  );
}

/** Rejects a member if one of the others is present. */
export const IsWithout = (...others: string[]): PropertyDecorator =>
  ValidateBy({
    name: 'isWithout',
    validator: {
      validate: (_value, context) => others.every((name) => Reflect.get(context?.object ?? {}, name) === undefined),
      defaultMessage: () => `must not be set together with ${others.join(' or ')}`,
    },
  });

/** The name of a file, without a path, so that it is in its folder. */
export const IsKeyFileName = () =>
  rule(
    'isKeyFileName',
    (value) => typeof value === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(value),
    'must be the name of a file: 1 to 128 letters, digits, dots, hyphens or underscores',
  );

/** Requires https, so that an attacker on the network cannot replace the keys. Loopback URLs may use http. */
export function IsKeySetUrl(): PropertyDecorator {
  return ValidateBy({
    name: 'isKeySetUrl',
    validator: { validate: isKeySetUrl, defaultMessage: () => 'must be an https URL without user and fragment' },
  });
}

function isKeySetUrl(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const url = new URL(value);
  if (url.username !== '' || url.password !== '' || url.hash !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url));
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
  const kids = signatureKeys(keys).map((key) => Reflect.get(key, 'kid'));
  if (kids.length === 0) return 'must have a key for signatures';
  return new Set(kids).size < kids.length ? 'must have keys with different kid' : undefined;
}

function keyViolation(key: unknown): string | undefined {
  if (typeof key !== 'object' || key === null) return 'must be a JWK';
  if (!isPublicJwk(key)) return 'must be a public key, without its private part';
  if (signatureKeys([key]).length === 0) return undefined;
  const { kid, use } = key as { kid?: unknown; use?: unknown };
  if (typeof kid !== 'string' || kid === '') return 'must have a kid';
  if (![undefined, 'sig', 'jwt-svid'].includes(use as string)) return 'must be for signatures';
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
