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

/** Reads a body as the form that its Content-Type says it is, else as JSON (contract, section 5). */
export function parseFormOrJson(text: string, contentType: string | undefined): Record<string, unknown> {
  const isForm = contentType?.toLowerCase().startsWith('application/x-www-form-urlencoded') ?? false;
  return isForm && !text.trimStart().startsWith('{') ? parseForm(text) : parseJsonObject(text);
}
