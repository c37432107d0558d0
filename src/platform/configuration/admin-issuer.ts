import { plainToInstance } from 'class-transformer';
import { IsOptional, Matches } from 'class-validator';
import { ForeignIssuer, TEXT, TEXT_RULE } from './foreign-issuer.js';

/** The authorization server of the operators (protocol §9.1). */
export class AdminIssuer extends ForeignIssuer {
  /** The claim with a role of an operator, or with a list of them. */
  @IsOptional()
  @Matches(TEXT, TEXT_RULE)
  role_claim = 'role';
}

/** Parses the JSON. A text that is no JSON object is returned as is, and then fails validation. */
export function parseAdminIssuer(value: unknown): unknown {
  try {
    const parsed: unknown = JSON.parse(String(value));
    const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
    return isObject ? plainToInstance(AdminIssuer, parsed) : value;
  } catch {
    return value;
  }
}
