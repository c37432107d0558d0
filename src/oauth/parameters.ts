import type { Type } from '@nestjs/common';
import { ValidateIf, validateSync } from 'class-validator';
import { declaredProperties } from '../platform/declared-properties.js';
import { isValid } from '../platform/fast-validation.js';
import { OAuthError } from './oauth-error.js';
import { hintOf } from './parameter-hint.js';

/** Marks a parameter that may be left out. One that is sent must be right: `null` and the empty string are not nothing. */
export const Optional = (): PropertyDecorator => ValidateIf((_body, value) => value !== undefined);

/**
 * Reads the parameters that a body class declares from what a caller sent, and validates them. Only declared names are
 * ever looked at, so nothing else a caller sends (`__proto__` too) reaches an object of ours.
 *
 * An empty string is no value of any parameter: a required parameter is missing then, an optional one is refused. A form
 * or a query has no empty parameters, because they are left out when it is parsed (RFC 6749 section 3.1).
 *
 * @throws OAuthError `invalid_request`, whose hint names the first faulty parameter
 */
export function readParameters<Body extends object>(bodyClass: Type<Body>, sent: Record<string, unknown>): Body {
  const body = new bodyClass();
  let firstEmpty: string | undefined;
  for (const name of declaredProperties(bodyClass)) {
    if (!Object.hasOwn(sent, name)) continue;
    if (sent[name] === '') firstEmpty ??= name;
    else Reflect.set(body, name, sent[name]);
  }
  if (firstEmpty === undefined && isValid(bodyClass, body)) return body;
  const [violation] = validateSync(body, { stopAtFirstError: true });
  if (violation) throw OAuthError.invalidRequest(hintOf(bodyClass, violation));
  if (firstEmpty !== undefined) throw OAuthError.invalidRequest(`${firstEmpty}: must not be empty`);
  return body;
}

/**
 * A required string that is read before the body class is known, by the rules of `readParameters`.
 *
 * @throws OAuthError `invalid_request`
 */
export function requiredString(name: string, value: unknown): string {
  if (value === undefined || value === '') throw OAuthError.invalidRequest(`${name}: required`);
  return string(name, value);
}

/**
 * An optional string that is read before the body class is known, by the rules of `readParameters`.
 *
 * @throws OAuthError `invalid_request`
 */
export function optionalString(name: string, value: unknown): string | undefined {
  if (value === '') throw OAuthError.invalidRequest(`${name}: must not be empty`);
  return value === undefined ? undefined : string(name, value);
}

function string(name: string, value: unknown): string {
  if (typeof value !== 'string') throw OAuthError.invalidRequest(`${name}: must be a string`);
  return value;
}
