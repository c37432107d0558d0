import { OAuthError } from './oauth-error.js';

/**
 * Reads an `application/x-www-form-urlencoded` body and omits parameters without a value (RFC 6749 §3.1).
 *
 * @throws OAuthError `invalid_request` if a parameter is repeated (RFC 6749 §3.2)
 */
export function parseForm(text: string): Record<string, string> {
  return parametersOf(text, 'body');
}

/** Reads the query of a URL by the rules of a form. */
export function parseQuery(url: string): Record<string, string> {
  return parametersOf(queryOf(url), 'query');
}

/** The query of a URL, not decoded. A question mark inside the query is part of it (RFC 3986 §3.4). */
export function queryOf(url: string): string {
  return /\?(.*)$/s.exec(url)?.[1] ?? '';
}

function parametersOf(text: string, part: 'body' | 'query'): Record<string, string> {
  const names = new Set<string>();
  const parameters: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    if (names.has(name)) throw OAuthError.invalidRequest(`${part}: a parameter is given more than once`);
    names.add(name);
    if (value !== '') parameters[name] = value;
  }
  return parameters;
}
