import type { Type } from '@nestjs/common';
import { ValidateIf, validateSync } from 'class-validator';
import { declaredProperties } from '../platform/declared-properties.js';
import { isValid } from '../platform/fast-validation.js';
import { OAuthError } from './oauth-error.js';
import { hintOf } from './parameter-hint.js';

/** Marks an optional parameter. A value that is present must be valid; `null` and the empty string count as present. */
export const Optional = (): PropertyDecorator => ValidateIf((_body, value) => value !== undefined);

/**
 * Reads and validates the parameters that a body class declares. The function reads declared names only, so that no
 * other name of the caller (such as `__proto__`) reaches an object of the service.
 *
 * An empty string is not a value: a required parameter counts as missing, and an optional parameter is invalid. A form
 * or a query has no empty parameters, because its parser omits them (RFC 6749 §3.1).
 *
 * @throws OAuthError `invalid_request`, whose hint names the first invalid parameter
 */
export function readParameters<Body extends object>(bodyClass: Type<Body>, parameters: Record<string, unknown>): Body {
  const body = new bodyClass();
  let firstEmpty: string | undefined;
  for (const name of declaredProperties(bodyClass)) {
    if (!Object.hasOwn(parameters, name)) continue;
    if (parameters[name] === '') firstEmpty ??= name;
    else Reflect.set(body, name, parameters[name]);
  }
  if (firstEmpty === undefined && isValid(bodyClass, body)) return body;
  const [violation] = validateSync(body, { stopAtFirstError: true });
  if (violation) throw OAuthError.invalidRequest(hintOf(bodyClass, violation));
  if (firstEmpty !== undefined) throw OAuthError.invalidRequest(`${firstEmpty}: must not be empty`);
  return body;
}

/**
 * Reads a required string before the body class is known, by the rules of `readParameters`.
 *
 * @throws OAuthError `invalid_request`
 */
export function requiredString(name: string, value: unknown): string {
  if (value === undefined || value === '') throw OAuthError.invalidRequest(`${name}: required`);
  return assertString(name, value);
}

/**
 * Reads an optional string before the body class is known, by the rules of `readParameters`.
 *
 * @throws OAuthError `invalid_request`
 */
export function optionalString(name: string, value: unknown): string | undefined {
  if (value === '') throw OAuthError.invalidRequest(`${name}: must not be empty`);
  return value === undefined ? undefined : assertString(name, value);
}

function assertString(name: string, value: unknown): string {
  if (typeof value !== 'string') throw OAuthError.invalidRequest(`${name}: must be a string`);
  return value;
}
