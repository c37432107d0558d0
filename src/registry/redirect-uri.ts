/** The column of a code's redirect URI has so many characters. */
const MAX_REDIRECT_URI_CHARACTERS = 2_000;

/** Schemes that carry code or local files. Not even a native application may register them. */
const DANGEROUS_SCHEMES = /^(javascript|data|file|blob|vbscript|about|ws|wss|ftp):/;

/**
 * Whether a URI may be registered as a redirect URI: absolute http(s), without fragment (RFC 6749 section 3.1.2);
 * for a native application also a private-use scheme, which is a domain name in reverse (RFC 8252 section 7.1).
 */
export function isRegistrableRedirectUri(uri: string, isNative: boolean): boolean {
  if (uri.length > MAX_REDIRECT_URI_CHARACTERS) return false;
  if (!URL.canParse(uri) || uri.includes('#') || /[\s\\]/.test(uri) || DANGEROUS_SCHEMES.test(uri)) return false;
  const { protocol, username, password, hostname } = new URL(uri);
  if (username || password) return false;
  if (protocol === 'http:' || protocol === 'https:') return /^https?:\/\/[^/]/.test(uri) && hostname !== '';
  return isNative && protocol.includes('.');
}

/** Whether a text is an origin as browsers send it: scheme, host, port, in lower case and nothing else. */
export function isOrigin(text: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#@\\\s]+$/.test(text)) return false;
  return !/^https?:/.test(text) || (URL.canParse(text) && new URL(text).origin === text);
}

/**
 * Whether a URI lies below a registered one, at a segment boundary: the same scheme, host and port, and nothing a
 * server might read as another place (query, fragment, userinfo, backslash, encoded slash or dot, dot segment even with
 * a path parameter, empty segment).
 */
export function isBelow(uri: string, registered: string): boolean {
  const base = registered.replace(/\/$/, '');
  if (!uri.startsWith(`${base}/`) || registered.includes('?')) return false;
  const rest = uri.slice(base.length);
  if (!/^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$/.test(rest) || /%(?:2f|5c|2e|00)/i.test(rest))
    return false;
  return !/\/(?:\/|\.{1,2}(?:[;/]|$))/.test(rest);
}
