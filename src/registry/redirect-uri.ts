/** The length of the column that stores the redirect URI of an authorization code. */
const MAX_REDIRECT_URI_CHARACTERS = 2_000;

/** Schemes for code, local files and other protocols, which a native application may not register either. */
const DANGEROUS_SCHEMES = /^(javascript|data|file|blob|vbscript|about|ws|wss|ftp):/;

/**
 * Absolute http(s) without fragment (RFC 6749 §3.1.2), or for a native application a private-use scheme, which is a
 * reversed domain name (RFC 8252 §7.1).
 */
export function isRegistrableRedirectUri(uri: string, isNative: boolean): boolean {
  if (uri.length > MAX_REDIRECT_URI_CHARACTERS) return false;
  if (!URL.canParse(uri) || uri.includes('#') || /[\s\\]/.test(uri) || DANGEROUS_SCHEMES.test(uri)) return false;
  const { protocol, username, password, hostname } = new URL(uri);
  if (username || password) return false;
  if (protocol === 'http:' || protocol === 'https:') return /^https?:\/\/[^/]/.test(uri) && hostname !== '';
  return isNative && protocol.includes('.');
}

/** As browsers send it: scheme, host and port in lower case. */
export function isOrigin(text: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#@\\\s]+$/.test(text)) return false;
  return !/^https?:/.test(text) || (URL.canParse(text) && new URL(text).origin === text);
}

/**
 * Below at a segment boundary, with the same scheme, host and port, and without a part that a server could interpret as
 * another path: query, fragment, userinfo, backslash, encoded slash or dot, empty segment, or dot segment, even with a
 * path parameter.
 */
export function isBelow(uri: string, registered: string): boolean {
  const base = registered.replace(/\/$/, '');
  if (!uri.startsWith(`${base}/`) || registered.includes('?')) return false;
  const rest = uri.slice(base.length);
  if (!/^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$/.test(rest) || /%(?:2f|5c|2e|00)/i.test(rest))
    return false;
  return !/\/(?:\/|\.{1,2}(?:[;/]|$))/.test(rest);
}
