/** One `name=value` of a `Cookie` header. */
export interface Cookie {
  name: string;
  value: string;
}

const EQUALS = '=';
const QUOTE = '"';

/**
 * The cookies of a `Cookie` header, in its order (RFC 6265 §5.4). Only `;` separates cookies: a space, a tab or a
 * comma is part of the value that it is in, as browsers send it.
 */
export function parseCookies(header: string): Cookie[] {
  return header.split(';').map(parseCookie);
}

/**
 * The cookies of a `Cookie` header that a program made of `Set-Cookie` lines, joined by commas, with or without their
 * attributes. Attributes are returned as cookies too.
 */
export function parseJoinedSetCookies(header: string): Cookie[] {
  return header.split(/[;,]/).map(parseCookie);
}

/** A piece without `=` has no name, as in RFC 6265bis §5.7. */
function parseCookie(piece: string): Cookie {
  const equals = piece.indexOf(EQUALS);
  if (equals < 0) return { name: '', value: trimmed(piece, 0, piece.length) };
  return { name: trimmed(piece, 0, equals), value: unquoted(trimmed(piece, equals + 1, piece.length)) };
}

/** Without spaces and tabs at its ends. A loop, because a regular expression for the end takes quadratic time. */
function trimmed(text: string, start: number, end: number): string {
  let first = start;
  let last = end;
  while (first < last && isBlank(text.charCodeAt(first))) first++;
  while (last > first && isBlank(text.charCodeAt(last - 1))) last--;
  return text.slice(first, last);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** A value may be wrapped in double quotes (RFC 6265 §4.1.1, `cookie-value`). */
function unquoted(value: string): string {
  const isQuoted = value.length >= 2 && value.startsWith(QUOTE) && value.endsWith(QUOTE);
  return isQuoted ? value.slice(1, -1) : value;
}
