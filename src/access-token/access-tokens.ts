import { randomUUID, sign, verify } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { sha256 } from '../platform/secret.js';
import type { InactiveReason } from './inactive-reason.js';
import type { SigningKey } from './key-set.js';
import type { Audience, SessionClaims } from './session-claims.js';
import { SigningKeys } from './signing-keys.js';

/** The claims of an access token (RFC 9068 §2.2, protocol §3.3). Times are in seconds since 1970. */
export interface AccessTokenClaims extends Partial<SessionClaims> {
  iss: string;
  sub: string;
  aud: Audience;
  client_id: string;
  organization_id: string;
  iat: number;
  exp: number;
  jti: string;
  /** Only in agent tokens: the granted scopes, separated by spaces. */
  scope?: string;
  /** Only in customer tokens: the name of the grant. */
  gty?: string;
  /** Only in tokens of a customer of a group. */
  group_id?: string;
  /** Only in tokens of a user of the organization, or by a grant that verifies users (protocol §3.3). */
  user_verified?: true;
}

export type IssuableClaims = Omit<AccessTokenClaims, 'iss' | 'iat' | 'exp' | 'jti'>;

/** What is known about a text that a caller presents as an access token. It is valid if it has no `inactiveReason`. */
export type InspectedToken =
  | { claims: AccessTokenClaims; inactiveReason?: undefined }
  /** The claims are present if the signature is valid. */
  | { claims?: AccessTokenClaims; inactiveReason: InactiveReason };

/** How far the clock of the process or server that issued a token may be ahead of the clock of this process. */
export const CLOCK_SKEW_SECONDS = 30;

/** The most tokens that are remembered. A token takes 0.7 KB of the heap (docs/performance.md). */
const MAX_VERIFIED_TOKENS = 5_000;

/** Issues and verifies access tokens of the form `REGION:JWS`. Only this folder depends on that form. */
@Injectable()
export class AccessTokens {
  private readonly issuer: string;
  private readonly prefix: string;
  /**
   * By the hash of the token. Only the check of the signature is saved: each use checks the key, the times and whether
   * the token has ended (decision 0032). A change of the key file replaces all keys.
   */
  private readonly verified = new LRUCache<string, { claims: AccessTokenClaims; key: SigningKey }>({
    max: MAX_VERIFIED_TOKENS,
  });

  constructor(
    configuration: Configuration,
    private readonly keys: SigningKeys,
    private readonly clock: Clock,
  ) {
    this.issuer = configuration.AUTH_URL;
    this.prefix = `${configuration.TOKEN_REGION}:`;
  }

  issue(claims: IssuableClaims, ttlSeconds: number, jti: string = randomUUID()): string {
    const { privateKey, header } = this.keys.current();
    const iat = this.clock.seconds();
    const payload: AccessTokenClaims = { iss: this.issuer, ...claims, iat, exp: iat + ttlSeconds, jti };
    const signed = `${header}.${Buffer.from(JSON.stringify(payload)).toString('base64url')}`;
    const signature = rawSignature(sign('sha256', Buffer.from(signed), privateKey));
    return `${this.prefix}${signed}.${signature.toString('base64url')}`;
  }

  /**
   * Does not check whether the token has ended. The claims are frozen, because all requests with this token share them.
   */
  inspect(token: string): InspectedToken {
    // The colon of the prefix is compared as it is, so a token with `%3A` is invalid (protocol §2.6).
    if (!token.startsWith(this.prefix)) return { inactiveReason: reasonOfForeignText(token) };
    const segments = token.slice(this.prefix.length).split('.');
    if (segments.length !== 3)
      return { inactiveReason: OPAQUE_TOKEN.test(token) ? 'not_an_access_token' : 'malformed' };
    const [header, payload, signature] = segments as [string, string, string];
    const key = this.keys.keyByHeader(header);
    if (!key) return { inactiveReason: 'unknown_key' };
    const hash = sha256(token);
    const remembered = this.verified.get(hash);
    const known = remembered?.key === key ? remembered.claims : undefined;
    if (!known && !isSigned(`${header}.${payload}`, signature, key)) return { inactiveReason: 'invalid_signature' };
    const claims: AccessTokenClaims = known ?? JSON.parse(Buffer.from(payload, 'base64url').toString());
    const inactiveReason = this.reasonOfClaims(claims);
    if (inactiveReason) return { claims, inactiveReason };
    if (!known) this.verified.set(hash, { claims: frozen(claims), key });
    return { claims };
  }

  private reasonOfClaims({ iss, exp, iat }: AccessTokenClaims): InactiveReason | undefined {
    const now = this.clock.seconds();
    if (iss !== this.issuer) return 'other_issuer';
    if (!(now < exp)) return 'expired';
    if (!(iat <= now + CLOCK_SKEW_SECONDS)) return 'not_yet_valid';
    return undefined;
  }
}

function frozen<Value extends object>(value: Value): Value {
  for (const part of Object.values(value)) if (typeof part === 'object' && part !== null) frozen(part);
  return Object.freeze(value);
}

/**
 * Other base64url texts decode to the same bytes. Only the canonical text is valid. ECDSA still accepts two signatures,
 * so the `jti` identifies a token, and never its text.
 */
function isSigned(text: string, signature: string, { publicKey }: SigningKey): boolean {
  const raw = Buffer.from(signature, 'base64url');
  if (raw.toString('base64url') !== signature || raw.length !== 2 * INTEGER_BYTES) return false;
  return verify('sha256', Buffer.from(text), publicKey, derSignature(raw));
}

const JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** A transfer token, an authorization code, or a refresh token, whose random part has two parts (protocol §3.5). */
export const OPAQUE_TOKEN = /^[A-Za-z0-9-]{1,16}:([\w-]{22}\.)?[\w-]{43}$/;
const REGION = /^[A-Za-z0-9-]{1,16}:/;

/** Why a text is no access token, if it does not begin with the region prefix of this service. */
function reasonOfForeignText(text: string): InactiveReason {
  if (/%3a/i.test(text)) return 'percent_encoded';
  if (JWS.test(text)) return 'no_region';
  return REGION.test(text) ? 'other_region' : 'malformed';
}

const INTEGER_BYTES = 32;
/** The longest signature in DER: both integers have an added zero byte. */
const MAX_DER_BYTES = 72;
/** DER's tags of a sequence and of an integer. */
const [SEQUENCE_TAG, INTEGER_TAG] = [0x30, 0x02];

/**
 * Converts an ECDSA signature from DER, the default of node:crypto, to the R and S of JWS (RFC 7518 §3.4). The option
 * `dsaEncoding` of node:crypto does the same, but costs 60 µs per signature (docs/performance.md).
 */
export function rawSignature(der: Buffer): Buffer {
  const raw = Buffer.alloc(2 * INTEGER_BYTES);
  const lengthOfR = der[3] as number; // 30 length 02 lengthOfR R… 02 lengthOfS S…
  copyInteger(der, 4, lengthOfR, raw, 0);
  copyInteger(der, 6 + lengthOfR, der[5 + lengthOfR] as number, raw, INTEGER_BYTES);
  return raw;
}

export function derSignature(raw: Buffer): Buffer {
  const der = Buffer.allocUnsafe(MAX_DER_BYTES);
  const endOfR = appendInteger(raw, 0, der, 2);
  const end = appendInteger(raw, INTEGER_BYTES, der, endOfR);
  der[0] = SEQUENCE_TAG;
  der[1] = end - 2;
  return der.subarray(0, end);
}

/** DER adds a zero byte before an integer whose first bit is set, and omits other leading zero bytes. */
function copyInteger(der: Buffer, start: number, length: number, raw: Buffer, at: number): void {
  const surplus = Math.max(0, length - INTEGER_BYTES);
  const missing = Math.max(0, INTEGER_BYTES - length);
  der.copy(raw, at + missing, start + surplus, start + length);
}

/** @returns the end of the integer in `der` */
function appendInteger(raw: Buffer, from: number, der: Buffer, to: number): number {
  const last = from + INTEGER_BYTES - 1;
  let start = from;
  while (start < last && raw[start] === 0) start++;
  let at = to + 2;
  if ((raw[start] as number) >= 0x80) der[at++] = 0;
  at += raw.copy(der, at, start, last + 1);
  der[to] = INTEGER_TAG;
  der[to + 1] = at - to - 2;
  return at;
}
