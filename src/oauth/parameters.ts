import type { Type } from '@nestjs/common';
import { ValidateIf, type ValidationError, validateSync } from 'class-validator';
import { declaredProperties } from '../platform/declared-properties.js';
import { keepsRules } from '../platform/kept-rules.js';
import { OAuthError } from './oauth-error.js';

/** Marks a parameter that may be left out. One that is sent must be right: `null` and the empty text are not nothing. */
export const Optional = (): PropertyDecorator => ValidateIf((_body, value) => value !== undefined);

/**
 * Reads the parameters that a body class declares from what a caller sent, and validates them. Only declared names are
 * ever looked at, so nothing else a caller sends (`__proto__` too) reaches an object of ours.
 *
 * @throws OAuthError `invalid_request`, whose hint names the first faulty parameter
 */
export function readParameters<Body extends object>(bodyClass: Type<Body>, sent: Record<string, unknown>): Body {
  const body = new bodyClass();
  for (const name of declaredProperties(bodyClass)) {
    if (Object.hasOwn(sent, name)) Reflect.set(body, name, sent[name]);
  }
  if (keepsRules(bodyClass, body)) return body;
  const [fault] = validateSync(body, { stopAtFirstError: true });
  if (fault) throw OAuthError.invalidRequest(hintOf(fault));
  return body;
}

function hintOf({ property, value, constraints }: ValidationError): string {
  if (value === undefined) return `${property}: required`;
  const rule = Object.values(constraints ?? {})[0] ?? 'is malformed';
  return `${property}: ${rule.replace(`${property} `, '')}`;
}
