import { plainToInstance } from 'class-transformer';
import { ArrayNotEmpty, ArrayUnique, IsArray, IsIn, IsOptional, Matches, MaxLength } from 'class-validator';
import { IsHttpUrl, IsIssuer } from '../validation/url-rules.js';

const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'EdDSA'];
const TEXT = /^\S(.*\S)?$/;
const TEXT_RULE = { message: 'must be a text without white space around it' };

/** An authorization server whose JWTs the service accepts, and how it validates them. */
abstract class ForeignIssuer {
  @IsIssuer()
  @MaxLength(255)
  issuer!: string;

  @IsHttpUrl()
  jwks_uri!: string;

  @Matches(TEXT, TEXT_RULE)
  audience!: string;

  @IsArray()
  @ArrayNotEmpty()
  @ArrayUnique()
  @IsIn(ALGORITHMS, { each: true })
  algorithms!: string[];

  /** The `typ` in the header of its tokens: `at+jwt`, or another value that this server writes. */
  @Matches(TEXT, TEXT_RULE)
  typ!: string;
}

/** The authorization server of the operators (protocol §9.1). */
export class AdminIssuer extends ForeignIssuer {
  /** The claim with a role of an operator, or with a list of them. */
  @IsOptional()
  @Matches(TEXT, TEXT_RULE)
  role_claim = 'role';
}

/** An authorization server whose agent tokens the service accepts (protocol §6.10). */
export class TrustedIssuer extends ForeignIssuer {
  /** The organizations for whose agents it may issue tokens. */
  @IsArray()
  @ArrayNotEmpty()
  @ArrayUnique()
  @Matches(TEXT, { ...TEXT_RULE, each: true })
  organizations!: string[];

  /** The scopes that count in its tokens, as the scopes of a client and an agent do. */
  @IsArray()
  @ArrayNotEmpty()
  @ArrayUnique()
  @Matches(/^[\x21\x23-\x5b\x5d-\x7e]+$/, { each: true, message: 'must be scopes, without spaces' })
  scopes = ['customers:own'];

  @IsOptional()
  @Matches(TEXT, TEXT_RULE)
  organization_claim = 'organization_id';

  @IsOptional()
  @Matches(TEXT, TEXT_RULE)
  scope_claim = 'scope';
}

interface OtherCallers {
  AUTH_URL: string;
  TRUSTED_AGENT_ISSUERS: readonly TrustedIssuer[];
  ADMIN_ISSUER?: AdminIssuer | undefined;
}

/**
 * Whether tokens of an issuer for an audience are those of agents or operators, or of this service. An issuer that also
 * signs tokens for others tells the kinds apart by the audience alone.
 */
export function isOfOtherCallers(
  { AUTH_URL, TRUSTED_AGENT_ISSUERS, ADMIN_ISSUER }: OtherCallers,
  issuer: unknown,
  audience: unknown,
): boolean {
  const others = [...TRUSTED_AGENT_ISSUERS, ...(ADMIN_ISSUER ? [ADMIN_ISSUER] : [])];
  return issuer === AUTH_URL || others.some((other) => other.issuer === issuer && other.audience === audience);
}

/** Text that is no JSON object is returned as is, and then fails validation. */
export function parseAdminIssuer(text: unknown): unknown {
  const parsed = parseJson(text);
  const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
  return isObject ? plainToInstance(AdminIssuer, parsed) : text;
}

/** Text that is no JSON array of entries is returned as is, and then fails validation. */
export function parseTrustedIssuers(text: unknown): unknown {
  const parsed = parseJson(text);
  // class-validator would not see an empty list as an entry
  if (!Array.isArray(parsed) || parsed.some(Array.isArray)) return text;
  return parsed.map((entry) => plainToInstance(TrustedIssuer, entry));
}

function parseJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}
