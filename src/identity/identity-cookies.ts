import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { UUID } from '../platform/uuid.js';

/** What a browser shows to be recognised. */
export interface BrowserCredentials {
  /** Any entity_id of the browser. */
  entityId: string;
  /** 32 bytes in lower-case hex. */
  secret: string;
}

/** Specification 2.4: two years, counted from the answer. */
const MAX_AGE = 63_072_000;
const SECRET = /^[0-9a-f]{64}$/;

/** The two identity cookies of specification 2.4. */
@Injectable()
export class IdentityCookies {
  private readonly idName: string;
  private readonly secretName: string;
  private readonly idPattern: RegExp;
  private readonly secretPattern: RegExp;
  private readonly place: string;
  private readonly flags: string;

  constructor(
    { COOKIE_PREFIX, COOKIE_DOMAIN, COOKIE_PARTITIONED }: Configuration,
    private readonly clock: Clock,
  ) {
    this.idName = `${COOKIE_PREFIX}cid`;
    this.secretName = `${COOKIE_PREFIX}cst`;
    this.idPattern = valuesOf(this.idName);
    this.secretPattern = valuesOf(this.secretName);
    this.place = `; Max-Age=${MAX_AGE}; Path=/v2/customer${COOKIE_DOMAIN === 'host-only' ? '' : `; Domain=${COOKIE_DOMAIN}`}`;
    this.flags = `; HttpOnly; Secure; SameSite=None${COOKIE_PARTITIONED ? '; Partitioned' : ''}`;
  }

  /**
   * The credentials in a `Cookie` header; `undefined` where there is no well-formed pair. Callers that are no browsers
   * send whole `Set-Cookie` lines back, so a value also ends at a comma. Where a name comes twice, the first id belongs
   * to the first secret and the second to the second: pairs are never mixed.
   */
  read(header: string | undefined): BrowserCredentials | undefined {
    if (header === undefined) return undefined;
    const ids = Array.from(header.matchAll(this.idPattern), ([, value = '']) => value);
    const secrets = Array.from(header.matchAll(this.secretPattern), ([, value = '']) => value);
    const pair = ids.findIndex((id, index) => UUID.test(id) && SECRET.test(secrets[index] ?? ''));
    return pair < 0 ? undefined : { entityId: ids[pair] as string, secret: secrets[pair] as string };
  }

  /** The two `Set-Cookie` lines that make a browser keep its credentials for two more years. */
  write({ entityId, secret }: BrowserCredentials): [string, string] {
    const expires = new Date(this.clock.now() + MAX_AGE * 1000).toUTCString();
    const attributes = `${this.place}; Expires=${expires}${this.flags}`;
    return [`${this.idName}=${entityId}${attributes}`, `${this.secretName}=${secret}${attributes}`];
  }
}

function valuesOf(name: string): RegExp {
  return new RegExp(`(?:^|[;,\\s])${name}="?([^;,\\s"]*)`, 'g');
}
