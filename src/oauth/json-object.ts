import { OAuthError } from './oauth-error.js';

/** No parameter of a grant is deeper. A deeper body could exhaust the stack of code that recurses over it. */
const MAX_NESTING_LEVELS = 16;

const QUOTE_CHAR_CODE = 0x22;
const BACKSLASH_CHAR_CODE = 0x5c;
const ESCAPE = '\\';

/**
 * Reads a request body as one JSON object (protocol §2.4).
 *
 * @throws OAuthError `Invalid message` if the body is not JSON; `invalid_request` if the body is no object, is nested
 *   deeper than 16 levels, or repeats a name, also if an escape sequence disguises the name
 */
export function parseJsonObject(text: string): Record<string, unknown> {
  const value = parseJson(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw OAuthError.invalidRequest('body: must be a JSON object');
  }
  const { members, depth } = scan(text);
  if (depth > MAX_NESTING_LEVELS)
    throw OAuthError.invalidRequest(`body: nested deeper than ${MAX_NESTING_LEVELS} levels`);
  const names = new Set(members.map(({ quotedName }) => decodeName(quotedName)));
  if (names.size < members.length) throw OAuthError.invalidRequest('body: a parameter is given more than once');
  if (!members.some(({ quotedName }) => quotedName.includes(ESCAPE))) return value as Record<string, unknown>;
  // V8 in Node 24 can mistake a name with escapes for another name that it parsed before. A name parsed alone is right.
  return Object.fromEntries(
    members.map(({ quotedName, valueText }) => [decodeName(quotedName), JSON.parse(valueText)]),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw OAuthError.invalidMessage();
  }
}

/** A member of an object as JSON text. */
interface Member {
  quotedName: string;
  valueText: string;
}

/** Decodes the escape sequences of a name. */
function decodeName(quotedName: string): string {
  return quotedName.includes(ESCAPE) ? JSON.parse(quotedName) : quotedName.slice(1, -1);
}

/** Scans valid JSON: the members of the outermost object, repeated names included, and the depth of nesting. */
function scan(json: string): { members: Member[]; depth: number } {
  const members: Member[] = [];
  let quotedName = '';
  let start = 0;
  let level = 0;
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case QUOTE_CHAR_CODE:
        at = endOfString(json, at);
        break;
      case 0x7b: // {
      case 0x5b: // [
        if (++level === 1) start = at + 1;
        depth = Math.max(depth, level);
        break;
      case 0x7d: // }
      case 0x5d: // ]
        if (--level === 0 && quotedName) members.push({ quotedName, valueText: json.slice(start, at) });
        break;
      case 0x3a: // :
        if (level !== 1) break;
        quotedName = json.slice(start, at).trim();
        start = at + 1;
        break;
      case 0x2c: // ,
        if (level !== 1) break;
        members.push({ quotedName, valueText: json.slice(start, at) });
        start = at + 1;
    }
  }
  return { members, depth };
}

/** The index of the quote that closes the string opened at `start`. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json.charCodeAt(at) !== QUOTE_CHAR_CODE) at += json.charCodeAt(at) === BACKSLASH_CHAR_CODE ? 2 : 1;
  return at;
}
