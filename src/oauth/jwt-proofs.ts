import { Injectable } from '@nestjs/common';
import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey } from 'jose';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { isIdText } from '../platform/validation/text-rules.js';
import { jose, verifyForeignJwt } from './foreign-jwt.js';
import type { JwtIssuer } from './jwt-issuer.js';
import { OAuthError } from './oauth-error.js';
import { RemoteKeySet } from './remote-key-set.js';

/** What a valid JWT of another issuer says. */
export interface ProvenJwt {
  issuer: string;
  /** The subject: 1 to 255 characters. */
  sub: string;
  /** Names the JWT among those of its issuer: 1 to 255 characters. */
  jti: string;
  expiresAt: Date;
  /** All claims. The issuer chooses their types. */
  claims: Readonly<Record<string, unknown>>;
}

/** Only asymmetric algorithms: with a symmetric key, every service that verifies a JWT could also sign it. */
const ALGORITHMS = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519'];
/** Headers by which a JWT brings its own key, and unsupported extensions (RFC 8725 §3.1, §3.10). */
const REJECTED_HEADERS = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64'];
/** Many issuers omit `typ` or send `JWT`. Other types are rejected (RFC 8725 §3.11). */
const ACCEPTED_TYPES = ['jwt', 'authorization-grant+jwt'];
const MAX_CHARACTERS = 8_192;
const SEGMENT = /^[A-Za-z0-9_-]+$/;

/** Verifies the JWTs by which issuers prove something to grants (RFC 7523 §3, RFC 8725). */
@Injectable()
export class JwtProofs {
  private readonly audience: string[];
  private readonly agentIssuers: Configuration['TRUSTED_AGENT_ISSUERS'];
  private readonly inlineKeys = new WeakMap<object, JWTVerifyGetKey>();
  private readonly remoteKeys = new Map<string, RemoteKeySet>();

  /** @internal */
  constructor(
    private readonly clock: Clock,
    { AUTH_URL, TRUSTED_AGENT_ISSUERS }: Configuration,
  ) {
    this.agentIssuers = TRUSTED_AGENT_ISSUERS;
    this.audience = [AUTH_URL, `${AUTH_URL}/v2/customer/token`];
  }

  /**
   * Verifies signature, algorithm, type, issuer, audience and times of a JWT, which needs `iss`, `sub`, `aud`, `exp` and
   * `jti`. It does not detect a second use: count it with `UseCounter`.
   *
   * @throws OAuthError `invalid_grant`; 503 while the keys of the issuer cannot be fetched
   */
  async verify(token: string, issuer: JwtIssuer): Promise<ProvenJwt> {
    assertAcceptedForm(token);
    const claims = await this.claimsOf(token, issuer);
    this.assertNoAgentToken(claims);
    const { iss, sub, jti, exp } = claims;
    if (!isIdText(sub)) throw invalidJwt('sub is no text of 1 to 255 characters');
    if (!isIdText(jti)) throw invalidJwt('jti is no text of 1 to 255 characters');
    return { issuer: iss as string, sub, jti, expiresAt: new Date((exp as number) * 1000), claims };
  }

  private async claimsOf(token: string, issuer: JwtIssuer): Promise<JWTPayload> {
    const rules = {
      algorithms: ALGORITHMS,
      issuer: issuer.issuer,
      audience: issuer.audience ?? this.audience,
      requiredClaims: ['iss', 'sub', 'aud', 'exp', 'jti'],
    };
    return verifyForeignJwt(token, this.keysOf(issuer), rules, this.clock).catch((error) => {
      if (error instanceof OAuthError) throw error;
      const { code, claim = '', name } = error as Partial<Record<string, string>>;
      throw invalidJwt(`${error instanceof jose().errors.JOSEError ? code : name} ${claim}`.trim());
    });
  }

  private keysOf({ jwks, jwks_uri }: JwtIssuer): JWTVerifyGetKey {
    if (jwks_uri !== undefined) {
      const keys = this.remoteKeys.get(jwks_uri) ?? new RemoteKeySet(jwks_uri, this.clock);
      this.remoteKeys.set(jwks_uri, keys);
      return keys.getKey;
    }
    const set = jwks as JSONWebKeySet;
    const keys = this.inlineKeys.get(set) ?? jose().createLocalJWKSet(set);
    this.inlineKeys.set(set, keys);
    return keys;
  }

  /** An issuer that also issues agent tokens (protocol §6.10) tells the two apart by the audience alone. */
  private assertNoAgentToken({ iss, aud }: JWTPayload): void {
    const audiences = [aud].flat();
    if (this.agentIssuers.some(({ issuer, audience }) => issuer === iss && audiences.includes(audience)))
      throw invalidJwt('aud is the audience of agent tokens');
  }
}

/** Rejects a JWT by its form and header before a key is looked up, so that it cannot cause a fetch of keys. */
function assertAcceptedForm(token: string): void {
  const segments = token.split('.');
  // base64url has several texts for the same bytes; only the canonical one is accepted, so that a text cannot vary
  const isCanonical = (text: string) =>
    SEGMENT.test(text) && Buffer.from(text, 'base64url').toString('base64url') === text;
  if (token.length > MAX_CHARACTERS || segments.length !== 3 || !segments.every(isCanonical))
    throw invalidJwt('not a signed JWT');
  const header = headerOf(token);
  if (!ALGORITHMS.includes(String(header.alg))) throw invalidJwt('alg is not accepted');
  const rejected = REJECTED_HEADERS.find((name) => Object.hasOwn(header, name));
  if (rejected) throw invalidJwt(`header has ${rejected}`);
  if (header.typ !== undefined && !ACCEPTED_TYPES.includes(mediaTypeOf(header.typ)))
    throw invalidJwt('typ is of another kind of JWT');
}

function headerOf(token: string): Record<string, unknown> {
  try {
    return jose().decodeProtectedHeader(token);
  } catch {
    throw invalidJwt('header is not a JSON object');
  }
}

/** The prefix `application/` is optional, and case is insignificant (RFC 7515 §4.1.9). */
function mediaTypeOf(typ: unknown): string {
  return String(typ)
    .toLowerCase()
    .replace(/^application\//, '');
}

function invalidJwt(reason: string): OAuthError {
  return OAuthError.invalidGrant(`jwt: ${reason}`);
}
