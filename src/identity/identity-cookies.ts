import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { UUID } from '../platform/uuid.js';
import { type Cookie, parseCookies, parseJoinedSetCookies } from './cookie-header.js';

/** The values of a browser's two identity cookies. */
export interface BrowserCredentials {
  /** Any entity_id of the browser. */
  entityId: string;
  /** 32 bytes in lower-case hex. */
  secret: string;
}

/**
 * The well-formed ids and secrets of a request, at least one of each. A request may have several, because a browser sends
 * cookies of one name that were set for different domains, paths or partitions. Any id may belong to any secret.
 */
export interface CandidateCredentials {
  entityIds: string[];
  secrets: string[];
}

/** Protocol §5.2: two years, counted from the answer. */
export const COOKIE_MAX_AGE_SECONDS = 63_072_000;
const SECRET = /^[0-9a-f]{64}$/;
/** Ids, and secrets, of one request that are tried. */
export const MAX_CANDIDATES = 4;

/** The two identity cookies of protocol §5.2. */
@Injectable()
export class IdentityCookies {
  private readonly idName: string;
  private readonly secretName: string;
  private readonly place: string;
  private readonly flags: string;

  constructor(
    { COOKIE_PREFIX, COOKIE_DOMAIN, COOKIE_PARTITIONED }: Configuration,
    private readonly clock: Clock,
  ) {
    this.idName = `${COOKIE_PREFIX}cid`;
    this.secretName = `${COOKIE_PREFIX}cst`;
    this.place = `; Max-Age=${COOKIE_MAX_AGE_SECONDS}; Path=/v2/customer${COOKIE_DOMAIN === 'host-only' ? '' : `; Domain=${COOKIE_DOMAIN}`}`;
    this.flags = `; HttpOnly; Secure; SameSite=None${COOKIE_PARTITIONED ? '; Partitioned' : ''}`;
  }

  /**
   * The identity cookies in a `Cookie` header; `undefined` without a well-formed id or without a well-formed secret.
   *
   * Some programs send whole `Set-Cookie` lines back, joined by commas. A header is read so only if its first cookie is an
   * identity cookie and the request has no `Origin`, which browsers send with each POST of a page.
   *
   * @param header the `Cookie` header
   * @param origin the `Origin` header
   */
  read(header: string | undefined, origin: string | undefined): CandidateCredentials | undefined {
    if (header === undefined) return undefined;
    const cookies = this.cookiesOf(header, origin);
    const entityIds = candidatesOf(cookies, this.idName, UUID);
    const secrets = candidatesOf(cookies, this.secretName, SECRET);
    return entityIds.length === 0 || secrets.length === 0 ? undefined : { entityIds, secrets };
  }

  /** The two `Set-Cookie` lines that make a browser keep its credentials for two more years. */
  setCookieLines({ entityId, secret }: BrowserCredentials): [string, string] {
    const expires = new Date(this.clock.now() + COOKIE_MAX_AGE_SECONDS * 1000).toUTCString();
    const attributes = `${this.place}; Expires=${expires}${this.flags}`;
    return [`${this.idName}=${entityId}${attributes}`, `${this.secretName}=${secret}${attributes}`];
  }

  private cookiesOf(header: string, origin: string | undefined): Cookie[] {
    const cookies = parseCookies(header);
    const [first] = cookies;
    const mayBeJoined = origin === undefined && (first?.name === this.idName || first?.name === this.secretName);
    return mayBeJoined && header.includes(',') ? parseJoinedSetCookies(header) : cookies;
  }
}

/**
 * The distinct well-formed values of the cookies with a name: the first and the last three if there are more than four.
 * So a visitor's own cookie is tried however many others come before it, or however many come after it.
 */
function candidatesOf(cookies: Cookie[], name: string, pattern: RegExp): string[] {
  const values = cookies
    .filter((cookie) => cookie.name === name && pattern.test(cookie.value))
    .map(({ value }) => value);
  if (values.length <= 1) return values;
  const [first, ...others] = new Set(values);
  return [first as string, ...others.slice(1 - MAX_CANDIDATES)];
}
