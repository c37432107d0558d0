import { plainToInstance } from 'class-transformer';
import { ArrayNotEmpty, ArrayUnique, IsArray, IsOptional, Matches } from 'class-validator';
import { ForeignIssuer, TEXT, TEXT_RULE } from './foreign-issuer.js';

const EACH_TEXT_RULE = { ...TEXT_RULE, each: true };

/** An authorization server whose agent tokens the service accepts, and how it validates them (protocol §6.10). */
export class TrustedIssuer extends ForeignIssuer {
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
