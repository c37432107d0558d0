import { Injectable } from '@nestjs/common';
import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey } from 'jose';
import { Clock, Configuration, isIdText, OAuthError, RemoteKeySet, verifyForeignJwt } from '../../public/grant.js';
import type { JwtBearerSettings } from './jwt-bearer.settings.js';

type Jose = typeof import('jose');

export interface ProvenUser {
  issuer: string;
  /** The organization's id of its user, byte for byte. */
  userId: string;
  jti: string;
  /** The expiry of the assertion, in seconds since 1970. */
  expires: number;
}

export interface AssertionUse {
  clientId: string;
  organizationId: string;
}

/** Only asymmetric algorithms: with a symmetric key, every service that verifies assertions could also sign them. */
const ALGORITHMS = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519'];
/** Headers by which an assertion brings its own key, and unsupported extensions (RFC 8725 §3.1, §3.10). */
const REJECTED_HEADERS = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64'];
/** Many sign-in systems omit `typ` or send `JWT`. Other types are rejected (RFC 8725 §3.11). */
const ACCEPTED_TYPES = ['jwt', 'authorization-grant+jwt'];
/** `exp` may be at most this far ahead of the issuer's clock. An earlier `iat` does not matter. */
const MAX_LIFETIME_SECONDS = 600;
/** How far the issuer's clock may be ahead. `verifyForeignJwt` has the same for `iat` and `nbf`. */
const CLOCK_SKEW_SECONDS = 30;
const SEGMENT = /^[A-Za-z0-9_-]+$/;

/** Verifies assertions of the sign-in systems of organizations (RFC 7523 §3, RFC 8725). */
@Injectable()
export class Assertions {
  private readonly audience: string[];
  private readonly agentIssuers: Configuration['TRUSTED_AGENT_ISSUERS'];
  private readonly inlineKeys = new WeakMap<object, JWTVerifyGetKey>();
  private readonly remoteKeys = new Map<string, RemoteKeySet>();

  constructor(
    private readonly clock: Clock,
    { AUTH_URL, TRUSTED_AGENT_ISSUERS }: Configuration,
  ) {
    this.agentIssuers = TRUSTED_AGENT_ISSUERS;
    this.audience = [AUTH_URL, `${AUTH_URL}/v2/customer/token`];
  }

  /** Does not detect a second use. @throws OAuthError `invalid_grant`; 503 if the issuer's keys cannot be fetched */
  async verify(assertion: string, settings: JwtBearerSettings, use: AssertionUse): Promise<ProvenUser> {
    const jose = await import('jose'); // loaded at the first use, because most deployments do not use this grant
    assertAcceptedForm(jose, assertion);
    const claims = await this.claimsOf(jose, assertion, settings);
    this.assertShortLived(claims);
    assertIntendedFor(claims, use);
    this.assertNoAgentToken(claims);
    const { iss: issuer, sub: userId, jti, exp: expires } = claims;
    if (!isIdText(userId)) throw invalidAssertion('sub is no text of 1 to 255 characters');
    if (!isIdText(jti)) throw invalidAssertion('jti is no text of 1 to 255 characters');
    return { issuer: issuer as string, userId, jti, expires: expires as number };
  }

  private async claimsOf(jose: Jose, assertion: string, settings: JwtBearerSettings): Promise<JWTPayload> {
    const rules = {
      algorithms: ALGORITHMS,
      issuer: settings.issuer,
      audience: settings.audience ?? this.audience,
      requiredClaims: ['iss', 'sub', 'aud', 'exp', 'jti'],
    };
    return verifyForeignJwt(assertion, this.keysOf(jose, settings), rules, this.clock).catch((error) => {
      if (error instanceof OAuthError) throw error;
      const { code, claim = '', name } = error as Partial<Record<string, string>>;
      throw invalidAssertion(`${error instanceof jose.errors.JOSEError ? code : name} ${claim}`.trim());
    });
  }

  private keysOf({ createLocalJWKSet }: Jose, { jwks, jwks_uri }: JwtBearerSettings): JWTVerifyGetKey {
    if (jwks_uri !== undefined) {
      const keys = this.remoteKeys.get(jwks_uri) ?? new RemoteKeySet(jwks_uri, this.clock);
      this.remoteKeys.set(jwks_uri, keys);
      return keys.getKey;
    }
    const set = jwks as JSONWebKeySet;
    const keys = this.inlineKeys.get(set) ?? createLocalJWKSet(set);
    this.inlineKeys.set(set, keys);
    return keys;
  }

  /** An issuer that also issues agent tokens (protocol §6.10) tells the two apart by the audience alone. */
  private assertNoAgentToken({ iss, aud }: JWTPayload): void {
    const audiences = [aud].flat();
    if (this.agentIssuers.some(({ issuer, audience }) => issuer === iss && audiences.includes(audience)))
      throw invalidAssertion('aud is the audience of agent tokens');
  }

  /** The issuer's clock may be ahead, also of an assertion with the longest lifetime. */
  private assertShortLived({ exp }: JWTPayload): void {
    const latest = this.clock.now() / 1000 + MAX_LIFETIME_SECONDS + CLOCK_SKEW_SECONDS;
    if (!(Number(exp) <= latest)) throw invalidAssertion('exp is more than 10 minutes ahead');
  }
}

/** Rejects an assertion by its form and header before a key is looked up, so that it cannot cause a fetch of keys. */
function assertAcceptedForm(jose: Jose, assertion: string): void {
  const segments = assertion.split('.');
  // base64url has several texts for the same bytes; only the canonical one is accepted, so that a text cannot vary
  const isCanonical = (text: string) =>
    SEGMENT.test(text) && Buffer.from(text, 'base64url').toString('base64url') === text;
  if (segments.length !== 3 || !segments.every(isCanonical)) throw invalidAssertion('not a signed JWT');
  const header = headerOf(jose, assertion);
  if (!ALGORITHMS.includes(String(header.alg))) throw invalidAssertion('alg is not accepted');
  const rejected = REJECTED_HEADERS.find((name) => Object.hasOwn(header, name));
  if (rejected) throw invalidAssertion(`header has ${rejected}`);
  if (header.typ !== undefined && !ACCEPTED_TYPES.includes(mediaTypeOf(header.typ)))
    throw invalidAssertion('typ is of another kind of JWT');
}

function headerOf(jose: Jose, assertion: string): Record<string, unknown> {
  try {
    return jose.decodeProtectedHeader(assertion);
  } catch {
    throw invalidAssertion('header is not a JSON object');
  }
}

/** The prefix `application/` is optional, and case is insignificant (RFC 7515 §4.1.9). */
function mediaTypeOf(typ: unknown): string {
  return String(typ)
    .toLowerCase()
    .replace(/^application\//, '');
}

/** An issuer can bind an assertion to a client and an organization. */
function assertIntendedFor({ client_id, organization_id }: JWTPayload, use: AssertionUse): void {
  if (client_id !== undefined && client_id !== use.clientId) throw invalidAssertion('for another client');
  if (organization_id !== undefined && organization_id !== use.organizationId)
    throw invalidAssertion('for another organization');
}

function invalidAssertion(reason: string): OAuthError {
  return OAuthError.invalidGrant(`assertion: ${reason}`);
}
