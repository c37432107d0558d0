import { plainToInstance } from 'class-transformer';
import { ArrayNotEmpty, IsArray, IsIn, IsOptional, IsString, IsUrl } from 'class-validator';

const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'EdDSA'];
const URL_RULES = { require_tld: false, protocols: ['http', 'https'], require_protocol: true };

/** An authorization server whose agent tokens the service accepts, and how it validates them (protocol §6.10). */
export class TrustedIssuer {
  @IsUrl(URL_RULES)
  issuer!: string;

  @IsUrl(URL_RULES)
  jwks_uri!: string;

  @IsString()
  audience!: string;

  @IsArray()
  @ArrayNotEmpty()
  @IsIn(ALGORITHMS, { each: true })
  algorithms!: string[];

  /** The `typ` in the header of its tokens: `at+jwt`, or another value that this server writes. */
  @IsString()
  typ!: string;

  /** The organizations for whose agents it may issue tokens. */
  @IsArray()
  @ArrayNotEmpty()
  @IsString({ each: true })
  organizations!: string[];

  /** The scopes that count in its tokens, as the scopes of a client and an agent do. */
  @IsArray()
  @IsString({ each: true })
  scopes = ['customers:own'];

  @IsOptional()
  @IsString()
  organization_claim = 'organization_id';

  @IsOptional()
  @IsString()
  scope_claim = 'scope';
}

/** Parses the JSON. A text that is no JSON is returned as is, and then fails validation. */
export function parseTrustedIssuers(value: unknown): unknown {
  try {
    const parsed: unknown = JSON.parse(String(value));
    return Array.isArray(parsed) ? parsed.map((entry) => plainToInstance(TrustedIssuer, entry)) : value;
  } catch {
    return value;
  }
}
