import { shortSecretPath } from '../entries/entry-checks.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { entriesIn, type RegistryDocument } from './registry-document.js';
import type { StoredEntries } from './stored-entries.js';

interface ShortSecret {
  path: string;
  /** The violation of a new secret of this length. */
  violation: string;
}

/**
 * The secrets that are too short but equal the stored secrets. Release 1 accepted secrets of any length, and a file
 * that it applied must stay applicable.
 */
export async function unchangedShortSecrets(document: RegistryDocument, stored: StoredEntries): Promise<ShortSecret[]> {
  const secrets = REGISTRY_RESOURCES.flatMap((resource) =>
    entriesIn(document, resource).map(async ([path, entry]) => {
      const secretPath = shortSecretPath(resource, path, entry);
      const { secret } = resource;
      const hash: unknown = secret && stored.rowOf(resource, entry)?.[secret.column];
      if (!secret || secretPath === undefined || typeof hash !== 'string') return [];
      const isUnchanged = await secret.kind.matches(hash, String(entry[secret.field]));
      return isUnchanged ? [{ path: secretPath, violation: `${secretPath}: ${secret.kind.lengthRule}` }] : [];
    }),
  );
  return (await Promise.all(secrets)).flat();
}
