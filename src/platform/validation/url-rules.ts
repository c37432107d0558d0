import { isIP } from 'node:net';
import { rule } from './validation.js';

const ENCODED_TEXT = String.raw`(?:[^\s@/?#\\%]|%[0-9A-Fa-f]{2})*`;
const HOST_AND_PORT = String.raw`(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9]\d{0,4})?`;
const AUTHORITY = new RegExp(`^(?:${ENCODED_TEXT}@)?${HOST_AND_PORT}$`);

/**
 * Whether a text is `user:password@host:port` with all special characters percent-encoded (RFC 3986 §3.2). For `URL`, a
 * `#`, `?` or `/` in a password ends the host, which would then be a piece of the password, and appear in messages.
 */
export const isAuthority = (text: string) => AUTHORITY.test(text) && isPercentEncoded(text);

/** Whether each percent sign begins an encoded character. */
export function isPercentEncoded(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}

/** An error of `fetch` contains the whole URL, so it must not have a password. */
function isHttpUrl(text: unknown): text is string {
  if (typeof text !== 'string' || !/^https?:\/\/[^\s\\#]+$/.test(text) || !URL.canParse(text)) return false;
  const { username, password, hostname, port } = new URL(text);
  return `${username}${password}` === '' && isHost(hostname) && port !== '0';
}

const isHttpUrlWithoutQuery = (text: unknown): text is string => isHttpUrl(text) && !text.includes('?');

/** A host as `URL` returns it: without empty labels, wildcards and upper case, and an IPv6 address in brackets. */
function isHost(text: string): boolean {
  return isIP(text.replace(/^\[(.*)\]$/, '$1')) !== 0 || isHostName(text);
}

function isHostName(text: string): boolean {
  const labels = text.split('.');
  const isNumeric = /^\d+$/.test(labels.at(-1) ?? ''); // an incorrect IPv4 address
  return !isNumeric && labels.every((label) => /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/.test(label));
}

export const isLoopback = ({ hostname }: URL): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);

export const IsHost = () =>
  rule(
    'isHost',
    (text: string) => isIP(text) !== 0 || isHostName(text.toLowerCase()),
    'must be an IP address or a host name',
  );

/** An http(s) origin in its normal form: no path, query, credentials, default port or upper case. */
export const IsHttpOrigin = () =>
  rule(
    'isHttpOrigin',
    (text: unknown) => isHttpUrl(text) && new URL(text).origin === text,
    'must be an http(s) URL with a valid host and port, without a path and without a slash at its end',
  );

export const IsHttpUrl = () =>
  rule('isHttpUrl', isHttpUrl, 'must be an absolute http(s) URL without user, password and fragment');

/** An issuer (RFC 8414 §2). */
export const IsIssuer = () =>
  rule('isIssuer', isHttpUrlWithoutQuery, 'must be an absolute http(s) URL without user, password, query and fragment');

/** The service adds /v1/traces. */
export const IsOtlpEndpoint = () =>
  rule(
    'isOtlpEndpoint',
    (text: unknown) => isHttpUrlWithoutQuery(text) && !/\/v1\/traces\/?$/.test(text),
    'must be an absolute http(s) URL without user, password, query and fragment, and without /v1/traces at its end',
  );
