import { validateSync } from 'class-validator';
import { RESERVED_CLAIMS } from '../access-token/reserved-claims.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { declaredProperties } from '../platform/validation/validation.js';
import type { GrantMetadata } from './grant.js';

const MAX_CLAIMS = 10;
/** The size of the values of all claims of a token as JSON. */
const MAX_CLAIMS_BYTES = 1_024;

/** @throws Error with the name of the class if a grant may not declare its claims (protocol §3.4) */
export function assertClaimsUsable(grant: GrantMetadata, className: string, others: GrantMetadata[]): void {
  const names = claimNamesOf(grant);
  if (grant.claims && names.length === 0)
    throw new Error(`${className}: the class of its claims declares none; add validation decorators to its fields`);
  if (names.length > MAX_CLAIMS) throw new Error(`${className}: declares more than ${MAX_CLAIMS} claims`);
  const reserved = names.find((name) => RESERVED_CLAIMS.has(name));
  if (reserved)
    throw new Error(`${className}: may not declare the claim "${reserved}", which has a meaning of its own; rename it`);
  for (const other of others) {
    const common = claimNamesOf(other).find((name) => names.includes(name));
    if (common)
      throw new Error(`${className}: the grant "${other.name}" declares the claim "${common}" too; rename it`);
  }
}

/** Only the grant can break the rule, so that a violation is an error of the service. @throws OAuthError 500 */
export function claimsOfResult(grant: GrantMetadata, claims: object): object {
  const violation = violationOf(grant, claims);
  if (violation !== undefined) throw OAuthError.serverError(new Error(`${grant.name}: ${violation}`));
  return claims;
}

function violationOf(grant: GrantMetadata, claims: object): string | undefined {
  if (!grant.claims) return 'returned claims, and declares none';
  const names = claimNamesOf(grant);
  const undeclared = Object.keys(claims).find((name) => !names.includes(name));
  if (undeclared !== undefined) return `returned the claim ${undeclared}, which it does not declare`;
  const [invalid] = validateSync(Object.assign(new grant.claims(), claims), { stopAtFirstError: true });
  if (invalid) return `returned an invalid value of the claim ${invalid.property}`;
  if (Buffer.byteLength(JSON.stringify(claims)) > MAX_CLAIMS_BYTES)
    return `returned claims of more than ${MAX_CLAIMS_BYTES} bytes`;
  return undefined;
}

function claimNamesOf({ claims }: GrantMetadata): string[] {
  return claims ? declaredProperties(claims) : [];
}
