import type { Type } from '@nestjs/common';
import { declaredProperties } from '../platform/validation/validation.js';
import { OAuthError } from './oauth-error.js';
import { readParameters } from './parameters.js';

export function parseQuery(url: string): Record<string, string> {
  return parseForm(queryOf(url), 'query');
}

/** The query of a URL, not decoded. A question mark inside the query is part of it (RFC 3986 §3.4). */
export function queryOf(url: string): string {
  return /\?(.*)$/s.exec(url)?.[1] ?? '';
}

/**
 * Decodes a form or a query. `URLSearchParams` alone replaces bytes that are not UTF-8, so that two texts could be one.
 *
 * @throws OAuthError `invalid_request` for percent-encoded bytes that are not UTF-8
 */
export function decodeForm(text: string, part: 'body' | 'query'): URLSearchParams {
  try {
    text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) => decodeURIComponent(encoded));
  } catch {
    throw OAuthError.invalidRequest(`${part}: percent-encoded bytes must be UTF-8`);
  }
  return new URLSearchParams(text);
}

/** Omits parameters without a value (RFC 6749 §3.1). @throws OAuthError if a parameter is repeated (RFC 6749 §3.2) */
export function parseForm(text: string, part: 'body' | 'query' = 'body'): Record<string, string> {
  const names = new Set<string>();
  const parameters: Record<string, string> = Object.create(null);
  for (const [name, value] of decodeForm(text, part)) {
    if (names.has(name)) throw OAuthError.invalidRequest(`${part}: a parameter is given more than once`);
    names.add(name);
    if (value !== '') parameters[name] = value;
  }
  return parameters;
}

/** The names that a hint repeats. Any other unknown name is only described. */
const PRINTABLE_NAME = /^[\w.-]{1,64}$/;

/**
 * Unknown parameters are errors here, unlike those of callers (protocol §2.5): with a misspelled filter, the operator
 * would get entries that the filter should exclude. @throws OAuthError `invalid_request`
 */
export function readStrictQuery<Query extends object>(queryClass: Type<Query>, url: string): Query {
  const declared = declaredProperties(queryClass);
  const unknown = [...new URLSearchParams(queryOf(url)).keys()].find((name) => !declared.includes(name));
  if (unknown !== undefined) {
    const name = PRINTABLE_NAME.test(unknown) ? unknown : 'query';
    // the caller chooses the name of an unknown parameter, and texts of callers are not logged
    throw OAuthError.invalidRequest(`${name}: unknown parameter`, 'an unknown parameter of the query');
  }
  return readParameters(queryClass, parseQuery(url));
}
