import { OAuthError } from '../oauth/oauth-error.js';

/** A client secret that was replaced, as SHA-256, and the end of its validity, which was fixed at that moment. */
export interface PreviousSecret {
  hash: string;
  /** ISO 8601. */
  expires_at: string;
}

/** The columns of `ClientApplication` that are about its secrets. */
interface SecretColumns {
  secretHash: string | null;
  previousSecrets: PreviousSecret[] | null;
  previousSecretHash: string | null;
  previousSecretExpiresAt: Date | null;
}

/** Replaced secrets of one client that are valid at the same time. */
const MAX_PREVIOUS_SECRETS = 5;

/** The columns of a client whose earlier secrets end at once. */
export const NO_PREVIOUS_SECRETS = { previousSecretHash: null, previousSecrets: null } as const;

/**
 * The replaced secrets of a client, the last one last. Processes of release 1 know one replaced secret, in columns of
 * their own. If that one is not in the list, such a process has written since, and only its columns count.
 */
export function previousSecretsOf({
  previousSecrets,
  previousSecretHash,
  previousSecretExpiresAt,
}: SecretColumns): PreviousSecret[] {
  if (previousSecretHash === null) return [];
  if (previousSecrets?.some(({ hash }) => hash === previousSecretHash)) return previousSecrets;
  if (previousSecretExpiresAt === null) return [];
  return [{ hash: previousSecretHash, expires_at: previousSecretExpiresAt.toISOString() }];
}

export function isValidAt(now: number, { expires_at }: PreviousSecret): boolean {
  return now < Date.parse(expires_at);
}

/**
 * The columns of a client with a new secret. The replaced secret is valid for `oldValidFor` seconds more. The ends of
 * secrets that were replaced earlier do not change: a caller who lost a response and asks again ends no secret that is
 * in use, and prolongs none that may have leaked.
 *
 * @throws OAuthError `invalid_request` where the client has no secret, `conflict` where too many replaced ones are
 * valid
 */
export function withNewSecret(client: SecretColumns, hash: string, now: number, oldValidFor: number): SecretColumns {
  if (client.secretHash === null) throw OAuthError.invalidRequest('client_id: a client without a secret');
  const replaced = { hash: client.secretHash, expires_at: new Date(now + oldValidFor * 1000).toISOString() };
  const previous = [...previousSecretsOf(client), replaced].filter((each) => isValidAt(now, each));
  if (previous.length > MAX_PREVIOUS_SECRETS) {
    const firstEnd = previous.map(({ expires_at }) => expires_at).sort()[0];
    throw OAuthError.conflict(
      `client_id: ${MAX_PREVIOUS_SECRETS} earlier secrets are still valid, one until ${firstEnd}; wait, or change client_secret, which ends them`,
    );
  }
  // release 1 keeps the oldest one: a caller who asks again after a lost response still uses it
  const [oldest] = previous;
  return {
    secretHash: hash,
    previousSecrets: previous,
    previousSecretHash: oldest?.hash ?? null,
    previousSecretExpiresAt: oldest ? new Date(oldest.expires_at) : null,
  };
}
