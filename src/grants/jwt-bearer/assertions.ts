import { Injectable } from '@nestjs/common';
import type { JWTPayload } from 'jose';
import { Clock, Configuration, OAuthError } from '../../public/grant.js';
import { IssuerKeys, type Jose } from './issuer-keys.js';
import type { JwtBearerSettings } from './jwt-bearer.settings.js';

/** What an assertion proves. */
export interface ProvenUser {
  issuer: string;
  /** The organization's own id of its user, byte for byte. */
  userId: string;
  /** By which the assertion is known when it comes again. */
  jti: string;
  /** When the assertion ends, in seconds since 1970. */
  expires: number;
}

/** The request that an assertion is for. */
export interface AssertionUse {
  clientId: string;
  organizationId: string;
}

/** Asymmetric ones alone: with a symmetric one, who can verify could sign. */
const ALGORITHMS = ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA', 'Ed25519'];
/** Headers by which an assertion would bring its own key, or rules that we do not know (RFC 8725 sections 3.1 and 3.10). */
const UNTRUSTED_HEADERS = ['jwk', 'jku', 'x5u', 'x5c', 'crit', 'b64'];
/** JWTs that say what they are must say that they are this (RFC 8725 section 3.11); most sign-in systems write JWT. */
const TYPES = ['jwt', 'authorization-grant+jwt'];
/** Seconds that an assertion may still be good for. */
const MAX_LIFETIME_SECONDS = 600;
/** Seconds that the issuer's clock may be ahead of ours. */
const CLOCK_SKEW_SECONDS = 30;
const MAX_CLAIM_LENGTH = 255;
const SEGMENT = /^[A-Za-z0-9_-]+$/;

/** Verifies assertions of organizations' own sign-in systems (RFC 7523 section 3, RFC 8725). */
@Injectable()
export class Assertions {
  private readonly audience: string[];

  constructor(
    private readonly keys: IssuerKeys,
    private readonly clock: Clock,
    { AUTH_URL }: Configuration,
  ) {
    this.audience = [AUTH_URL, `${AUTH_URL}/v2/customer/token`];
  }

  /**
   * The user whom an assertion is about. Whether it was used before is not looked at.
   *
   * @throws OAuthError `invalid_grant`; `temporarily_unavailable` while the issuer's keys cannot be had
   */
  async verify(assertion: string, settings: JwtBearerSettings, use: AssertionUse): Promise<ProvenUser> {
    const jose = await import('jose'); // a service to which nobody signs in so is spared loading it
    refuseStrange(jose, assertion);
    const claims = await this.claimsOf(jose, assertion, settings);
    this.refuseUntimely(claims);
    refuseForOthers(claims, use);
    const { iss: issuer, sub: userId, jti, exp: expires } = claims;
    if (!isText(userId)) throw refusal('sub is no text of 1 to 255 characters');
    if (!isText(jti)) throw refusal('jti is no text of 1 to 255 characters');
    return { issuer: issuer as string, userId, jti, expires: expires as number };
  }

  private async claimsOf(jose: Jose, assertion: string, settings: JwtBearerSettings): Promise<JWTPayload> {
    const { errors, jwtVerify } = jose;
    const { payload } = await jwtVerify(assertion, this.keys.of(jose, settings), {
      algorithms: ALGORITHMS,
      issuer: settings.issuer,
      audience: settings.audience ?? this.audience,
      requiredClaims: ['iss', 'sub', 'aud', 'exp', 'jti'],
      currentDate: new Date(this.clock.now()),
      clockTolerance: CLOCK_SKEW_SECONDS,
    }).catch((error) => {
      if (error instanceof OAuthError) throw error;
      const { code, claim = '', name } = error as Partial<Record<string, string>>;
      throw refusal(`${error instanceof errors.JOSEError ? code : name} ${claim}`.trim());
    });
    return payload;
  }

  /** The tolerance is for a clock that is ahead; what has expired has expired. */
  private refuseUntimely({ exp, iat }: JWTPayload): void {
    const now = this.clock.now() / 1000;
    if (!(now < Number(exp))) throw refusal('expired');
    if (!(Number(exp) <= now + MAX_LIFETIME_SECONDS)) throw refusal('exp is more than 10 minutes ahead');
    if (iat !== undefined && !(typeof iat === 'number' && iat <= now + CLOCK_SKEW_SECONDS))
      throw refusal('iat is in the future');
  }
}

/** What cannot be an assertion, or would have its own way with the verification; before a key is asked for. */
function refuseStrange(jose: Jose, assertion: string): void {
  const segments = assertion.split('.');
  // the same bytes spelt otherwise would be the same assertion as another text
  const isCanonical = (text: string) =>
    SEGMENT.test(text) && Buffer.from(text, 'base64url').toString('base64url') === text;
  if (segments.length !== 3 || !segments.every(isCanonical)) throw refusal('not a signed JWT');
  const header = headerOf(jose, assertion);
  if (!ALGORITHMS.includes(String(header.alg))) throw refusal('alg is not one of ours');
  const strange = UNTRUSTED_HEADERS.find((name) => Object.hasOwn(header, name));
  if (strange) throw refusal(`header has ${strange}`);
  if (header.typ !== undefined && !TYPES.includes(mediaTypeOf(header.typ))) throw refusal('typ is that of another JWT');
}

function headerOf(jose: Jose, assertion: string): Record<string, unknown> {
  try {
    return jose.decodeProtectedHeader(assertion);
  } catch {
    throw refusal('header is no JSON object');
  }
}

/** RFC 7515 section 4.1.9: `application/` may be left out, and case does not matter. */
function mediaTypeOf(typ: unknown): string {
  return String(typ)
    .toLowerCase()
    .replace(/^application\//, '');
}

/** An issuer may bind its assertion to the client and the organization it is for. */
function refuseForOthers({ client_id, organization_id }: JWTPayload, use: AssertionUse): void {
  if (client_id !== undefined && client_id !== use.clientId) throw refusal('for another client');
  if (organization_id !== undefined && organization_id !== use.organizationId)
    throw refusal('for another organization');
}

/** Half a surrogate pair would be stored as any other half. */
function isText(value: unknown): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > MAX_CLAIM_LENGTH) return false;
  return /^[^\p{Cc}\p{Cs}]*$/u.test(value);
}

function refusal(reason: string): OAuthError {
  return OAuthError.invalidGrant(`assertion: ${reason}`);
}
