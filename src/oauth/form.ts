import { parseJsonObject } from './json-object.js';
import { OAuthError } from './oauth-error.js';

/**
 * Reads an `application/x-www-form-urlencoded` text.
 *
 * @throws OAuthError `invalid_request` when a name comes twice (RFC 6749 section 3.2)
 */
export function parseForm(text: string): Record<string, string> {
  const fields: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in fields) throw OAuthError.invalidRequest('body: a parameter is given more than once');
    fields[name] = value;
  }
  return fields;
}

/**
 * Whether a body is the form that its Content-Type says it is: `curl -d` says so of JSON too, which stays JSON (contract,
 * section 5).
 */
export function isForm(text: string, contentType: string | undefined): boolean {
  if (!contentType?.toLowerCase().startsWith('application/x-www-form-urlencoded')) return false;
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}

/** Reads the parameters of a body that may be a form or JSON. */
export function parseFormOrJson(text: string, contentType: string | undefined): Record<string, unknown> {
  return isForm(text, contentType) ? parseForm(text) : parseJsonObject(text);
}
