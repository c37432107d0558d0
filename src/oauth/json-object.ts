import { OAuthError } from './oauth-error.js';

/** Deeper than any parameter of any grant; beyond, a body is an attack on whoever walks it. */
const MAX_DEPTH = 16;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ESCAPE = '\\';

/**
 * Reads a request body as one JSON object (protocol §2.4).
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
  if (depth > MAX_DEPTH) throw OAuthError.invalidRequest(`body: nested deeper than ${MAX_DEPTH} levels`);
  const names = new Set(members.map(({ name }) => spelt(name)));
  if (names.size < members.length) throw OAuthError.invalidRequest('body: a parameter is given more than once');
  if (!members.some(({ name }) => name.includes(ESCAPE))) return value as Record<string, unknown>;
  // V8 of Node 24 may take a name that is spelt with escapes for another that it has met before: not if it stands alone
  return Object.fromEntries(members.map(({ name, content }) => [spelt(name), JSON.parse(content)]));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw OAuthError.invalidMessage();
  }
}

/** A member of an object as it is written: the name with its quotes, what stands after the colon. */
interface Member {
  name: string;
  content: string;
}

/** The name that a text in quotes spells. */
function spelt(name: string): string {
  return name.includes(ESCAPE) ? JSON.parse(name) : name.slice(1, -1);
}

/** The members of the outermost object of a valid JSON text, repeated ones too, and how deep the text is nested. */
function measure(json: string): { members: Member[]; depth: number } {
  const members: Member[] = [];
  let name = '';
  let start = 0;
  let level = 0;
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(json, at);
        break;
      case 0x7b: // {
      case 0x5b: // [
        if (++level === 1) start = at + 1;
        depth = Math.max(depth, level);
        break;
      case 0x7d: // }
      case 0x5d: // ]
        if (--level === 0 && name) members.push({ name, content: json.slice(start, at) });
        break;
      case 0x3a: // :
        if (level !== 1) break;
        name = json.slice(start, at).trim();
        start = at + 1;
        break;
      case 0x2c: // ,
        if (level !== 1) break;
        members.push({ name, content: json.slice(start, at) });
        start = at + 1;
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
