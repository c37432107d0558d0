import { createHmac } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { equalInConstantTime } from '../platform/secret.js';
import { UUID } from '../platform/uuid.js';
import { type BrowserPair, MAX_PAIRS } from '../session/browser-recognition.js';

/** What the two identity cookies of a browser are made of. */
export interface BrowserCredentials {
  /** The `entity_id` of the customer that the cookies are set for. */
  entityId: string;
  /** The browser's id and its secret. Treat it as opaque. */
  secret: string;
}

/**
 * The pairs of identity cookies of a request: an id and a secret that were set together. A request may have several,
 * because a browser sends cookies of one name that were set for different domains, paths or partitions.
 */
export interface CandidateCredentials {
  /** @internal */
  pairs: BrowserPair[];
}

/** Two years, counted from the response (protocol §5.2). */
export const COOKIE_MAX_AGE_SECONDS = 63_072_000;
/** The browser's id without hyphens, the secret, and a part of the HMAC of the customer's id. */
const SECRET_PATTERN = /^[0-9a-f]{112}$/;
const ID_CHARACTERS = 32;
const SECRET_CHARACTERS = 64;
const TAG_CHARACTERS = 16;
/** How many ids and how many secrets of one request are compared with each other. */
const MAX_VALUES = 4;

/** Reads and writes the two identity cookies (protocol §5.2 and §5.4). */
@Injectable()
export class IdentityCookies {
  private readonly idName: string;
  private readonly secretName: string;
  private readonly pathAndDomain: string;
  private readonly flags: string;

  /** @internal */
  constructor(
    { COOKIE_PREFIX, COOKIE_DOMAIN, COOKIE_PARTITIONED }: Configuration,
    private readonly clock: Clock,
  ) {
    this.idName = `${COOKIE_PREFIX}cid`;
    this.secretName = `${COOKIE_PREFIX}cst`;
    const domain = COOKIE_DOMAIN === 'host-only' ? '' : `; Domain=${COOKIE_DOMAIN}`;
    this.pathAndDomain = `; Path=/v2/customer${domain}`;
    this.flags = `; HttpOnly; Secure; SameSite=None${COOKIE_PARTITIONED ? '; Partitioned' : ''}`;
  }

  /**
   * Reads the identity cookies of a `Cookie` header; `undefined` without a pair that was set together.
   *
   * Some programs send whole `Set-Cookie` lines back, joined by commas. The method splits a header at commas only if
   * its first cookie is an identity cookie and the request has no `Origin`. Browsers send `Origin` with each POST of a
   * page.
   *
   * @param header the `Cookie` header
   * @param origin the `Origin` header
   */
  read(header: string | undefined, origin: string | undefined): CandidateCredentials | undefined {
    if (header === undefined) return undefined;
    const cookies = this.cookiesOf(header, origin);
    const entityIds = candidatesOf(cookies, this.idName, UUID);
    const secrets = candidatesOf(cookies, this.secretName, SECRET_PATTERN);
    const pairs = secrets.flatMap((secret) => pairOf(secret, entityIds) ?? []);
    return pairs.length === 0 ? undefined : { pairs: pairs.slice(0, MAX_PAIRS) };
  }

  /** The two `Set-Cookie` lines with which a browser stores its credentials for two more years. */
  setCookieLines({ entityId, secret }: BrowserCredentials): [string, string] {
    const attributes = this.attributes(COOKIE_MAX_AGE_SECONDS);
    const tag = tagOf(secret.slice(ID_CHARACTERS), entityId);
    return [`${this.idName}=${entityId}${attributes}`, `${this.secretName}=${secret}${tag}${attributes}`];
  }

  /** The two `Set-Cookie` lines with which a browser deletes its credentials. A cookie is deleted by its attributes. */
  clearCookieLines(): [string, string] {
    const attributes = this.attributes(0);
    return [`${this.idName}=${attributes}`, `${this.secretName}=${attributes}`];
  }

  private attributes(maxAgeSeconds: number): string {
    const expires = new Date(maxAgeSeconds === 0 ? 0 : this.clock.now() + maxAgeSeconds * 1000).toUTCString();
    return `; Max-Age=${maxAgeSeconds}${this.pathAndDomain}; Expires=${expires}${this.flags}`;
  }

  /**
   * The cookies of a header in its order (RFC 6265 §5.4). A space, a tab or a comma is part of a value, because browsers
   * send them in values. Of joined `Set-Cookie` lines, the attributes are read as cookies too.
   */
  private cookiesOf(header: string, origin: string | undefined): Cookie[] {
    const cookies = header.split(';').map(parseCookie);
    const [first] = cookies;
    const mayBeJoined = origin === undefined && (first?.name === this.idName || first?.name === this.secretName);
    return mayBeJoined && header.includes(',') ? header.split(/[;,]/).map(parseCookie) : cookies;
  }
}

/**
 * The distinct well-formed values of the cookies with a name. Malformed identity cookies are ignored and never cause an
 * error (protocol §5.4). If there are more than four values, only the first and the last three are tried. Foreign
 * cookies therefore cannot displace the browser's own cookie if they all precede or all follow it.
 */
function candidatesOf(cookies: Cookie[], name: string, pattern: RegExp): string[] {
  const values = cookies
    .filter((cookie) => cookie.name === name && pattern.test(cookie.value))
    .map(({ value }) => value);
  if (values.length <= 1) return values;
  const [first, ...others] = new Set(values);
  return [first as string, ...others.slice(1 - MAX_VALUES)];
}

/** The secret with the id that it was set together with; `undefined` if the request does not have this id. */
function pairOf(value: string, entityIds: string[]): BrowserPair | undefined {
  const end = ID_CHARACTERS + SECRET_CHARACTERS;
  const [cookie, tag] = [value.slice(0, end), value.slice(end)];
  const secret = cookie.slice(ID_CHARACTERS);
  const entityId = entityIds.find((id) => equalInConstantTime(tagOf(secret, id), tag));
  if (entityId === undefined) return undefined;
  const browserId = cookie.slice(0, ID_CHARACTERS).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  return { entityId, browserId, secret, cookie };
}

/** Ties the secret to the customer's id, so that a pair of cookies that were not set together is no pair. */
function tagOf(secret: string, entityId: string): string {
  return createHmac('sha256', secret).update(entityId).digest('hex').slice(0, TAG_CHARACTERS);
}

/** One `name=value` of a `Cookie` header. */
interface Cookie {
  name: string;
  value: string;
}

const QUOTE = '"';

/** A piece without `=` is a value without a name (RFC 6265bis §5.7). */
function parseCookie(piece: string): Cookie {
  const equals = piece.indexOf('=');
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
