import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { entriesIn, type RegistryDocument } from './registry-document.js';
import type { StoredEntries } from './stored-entries.js';

/** One warning names at most this many paths. */
const MAX_NAMED_PATHS = 20;

/** Warnings about a file that is accepted. A warning has paths but no values, because a value may be a secret. */
export function warningsOf(document: RegistryDocument, stored: StoredEntries): string[] {
  return REGISTRY_RESOURCES.flatMap((resource) => {
    const { warning } = resource;
    if (!warning) return [];
    const entries = entriesIn(document, resource);
    const matching = entries.filter(([, entry]) => warning.appliesTo(entry, stored.rowOf(resource, entry)));
    return warningOf(
      matching.map(([path]) => path),
      warning.text,
    );
  });
}

function warningOf(paths: string[], text: string): string[] {
  if (paths.length === 0) return [];
  const more = paths.length - MAX_NAMED_PATHS;
  return [`${paths.slice(0, MAX_NAMED_PATHS).join(', ')}${more > 0 ? ` and ${more} more` : ''}: ${text}`];
}
