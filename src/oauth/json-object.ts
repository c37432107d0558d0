import { OAuthError } from './oauth-error.js';

/** Deeper than any parameter of any grant; beyond, a body is an attack on whoever walks it. */
const DEEPEST = 16;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Reads a request body as one JSON object (contract, section 5).
 *
 * @throws OAuthError `Invalid message` when it is not JSON; `invalid_request` when it is no object, is nested deeper
 *   than 16 levels, or has a name twice, in whatever spelling
 */
export function parseJsonObject(text: string): Record<string, unknown> {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw OAuthError.invalidRequest('body: must be a JSON object');
  }
  const { members, depth } = measure(text);
  if (depth > DEEPEST) throw OAuthError.invalidRequest(`body: nested deeper than ${DEEPEST} levels`);
  if (members !== Object.keys(value).length)
    throw OAuthError.invalidRequest('body: a parameter is given more than once');
  return value as Record<string, unknown>;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw OAuthError.invalidMessage();
  }
}

/**
 * How many members the outermost object of a valid JSON text is written with, and how deep the text is nested.
 * `JSON.parse` keeps the last of members with one name: where it kept fewer than were written, one was repeated.
 */
function measure(json: string): { members: number; depth: number } {
  let members = 0;
  let level = 0;
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(json, at);
        break;
      case 0x7b: // {
      case 0x5b: // [
        depth = Math.max(depth, ++level);
        break;
      case 0x7d: // }
      case 0x5d: // ]
        level--;
        break;
      case 0x3a: // :
        if (level === 1) members++;
    }
  }
  return { members, depth };
}

/** Where the string that opens at `start` closes. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json.charCodeAt(at) !== QUOTE) at += json.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}
