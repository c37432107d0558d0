import { plainToInstance } from 'class-transformer';
import { ArrayNotEmpty, ArrayUnique, IsArray, IsIn, IsOptional, Matches, MaxLength } from 'class-validator';
import { IsHttpUrl, IsIssuer } from './url-rules.js';

const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'EdDSA'];
const TEXT = /^\S(.*\S)?$/;
const TEXT_RULE = { message: 'must be a text without white space around it' };
const EACH_TEXT_RULE = { ...TEXT_RULE, each: true };

/** An authorization server whose agent tokens the service accepts, and how it validates them (protocol §6.10). */
export class TrustedIssuer {
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

  /** The organizations for whose agents it may issue tokens. */
  @IsArray()
  @ArrayNotEmpty()
  @ArrayUnique()
  @Matches(TEXT, EACH_TEXT_RULE)
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

/** Parses the JSON. A text that is no JSON is returned as is, and then fails validation. */
export function parseTrustedIssuers(value: unknown): unknown {
  try {
    const parsed: unknown = JSON.parse(String(value));
    // the rules of the entries would not see an empty list as an entry
    if (!Array.isArray(parsed) || parsed.some(Array.isArray)) return value;
    return parsed.map((entry) => plainToInstance(TrustedIssuer, entry));
  } catch {
    return value;
  }
}
