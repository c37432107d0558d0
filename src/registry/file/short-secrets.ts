import { sha256 } from '../../platform/secret.js';
import { MIN_SECRET_LENGTH, SECRET_RULE } from './entry-rules.js';

/** Entries with their paths, the field of their id and the field of their secret. */
interface SecretField {
  entries: [path: string, entry: Record<string, unknown>][];
  idField: string;
  secretField: string;
  /** SHA-256 of stored secrets by id: a short secret that is one of them is unchanged and accepted. */
  storedHashes?: Map<string, string | null> | undefined;
}

export function isShortSecret(secret: unknown): secret is string {
  return typeof secret === 'string' && secret !== '' && secret.length < MIN_SECRET_LENGTH;
}

/** The faults of secrets that are too short; one that release 1 accepted and that has not changed is no fault. */
export function shortSecretFaults({ entries, idField, secretField, storedHashes }: SecretField): string[] {
  return entries
    .filter(([, { [idField]: id, [secretField]: secret }]) => {
      return isShortSecret(secret) && storedHashes?.get(String(id)) !== sha256(secret);
    })
    .map(([path]) => `${path}.${secretField}: ${SECRET_RULE}`);
}
