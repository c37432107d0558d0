/** One `name=value` of a `Cookie` header. */
export interface Cookie {
  name: string;
  value: string;
}

const EQUALS = '=';
const QUOTE = '"';

/**
 * Parses a `Cookie` header in its order (RFC 6265 §5.4). The service splits a Cookie header at `;` only; the one
 * exception is in `IdentityCookies`. A space, a tab or a comma is part of the value, because browsers send them in
 * values.
 */
export function parseCookies(header: string): Cookie[] {
  return header.split(';').map(parseCookie);
}

/**
 * Parses a `Cookie` header that a program built from `Set-Cookie` lines, joined by commas, with or without their
 * attributes. The result contains the attributes as cookies too.
 */
export function parseJoinedSetCookies(header: string): Cookie[] {
  return header.split(/[;,]/).map(parseCookie);
}

/** A piece without `=` is a value without a name (RFC 6265bis §5.7). */
function parseCookie(piece: string): Cookie {
  const equals = piece.indexOf(EQUALS);
  if (equals < 0) return { name: '', value: trim(piece, 0, piece.length) };
  return { name: trim(piece, 0, equals), value: unquote(trim(piece, equals + 1, piece.length)) };
}

/** Removes spaces and tabs at both ends. A regular expression would take quadratic time for the end. */
function trim(text: string, start: number, end: number): string {
  let first = start;
  let last = end;
  while (first < last && isBlank(text.charCodeAt(first))) first++;
  while (last > first && isBlank(text.charCodeAt(last - 1))) last--;
  return text.slice(first, last);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Removes the double quotes around a value (RFC 6265 §4.1.1, `cookie-value`). */
function unquote(value: string): string {
  const isQuoted = value.length >= 2 && value.startsWith(QUOTE) && value.endsWith(QUOTE);
  return isQuoted ? value.slice(1, -1) : value;
}
