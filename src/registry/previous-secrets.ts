import { OAuthError } from '../oauth/oauth-error.js';

/** The hash of a replaced client secret, and the end of its validity, which is fixed when the secret is replaced. */
export interface PreviousSecret {
  hash: string;
  /** ISO 8601. */
  expires_at: string;
}

interface SecretColumns {
  secretHash: string | null;
  previousSecrets: PreviousSecret[] | null;
}

const MAX_PREVIOUS_SECRETS = 5;

export function isValidAt(now: number, { expires_at }: PreviousSecret): boolean {
  return now < Date.parse(expires_at);
}

export function secretEnds(previousSecrets: PreviousSecret[] | null, now: number): string[] {
  const valid = (previousSecrets ?? []).filter((secret) => isValidAt(now, secret));
  return valid.map(({ expires_at }) => expires_at).sort();
}

/**
 * Secrets that were replaced earlier keep their ends. So a caller who repeats the request after a lost response neither
 * ends a secret that is in use, nor prolongs one that may have leaked. @throws OAuthError `conflict`
 */
export function withNewSecret(
  client: SecretColumns,
  hash: string,
  now: number,
  oldValidForSeconds: number,
): SecretColumns {
  const expires_at = new Date(now + oldValidForSeconds * 1000).toISOString();
  const replaced = client.secretHash === null ? [] : [{ hash: client.secretHash, expires_at }];
  const previousSecrets = [...(client.previousSecrets ?? []), ...replaced].filter((secret) => isValidAt(now, secret));
  if (previousSecrets.length > MAX_PREVIOUS_SECRETS) {
    const [firstEnd] = secretEnds(previousSecrets, now);
    throw tooManySecrets(String(firstEnd));
  }
  return { secretHash: hash, previousSecrets };
}

const tooManySecrets = (firstEnd: string) =>
  OAuthError.conflict(
    `client_id: ${MAX_PREVIOUS_SECRETS} earlier secrets are still valid, one until ${firstEnd}; wait, or change client_secret, which ends them`,
  );
