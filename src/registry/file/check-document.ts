import { entryViolations } from '../entries/entry-checks.js';
import type { GrantSettingsClasses } from '../grant-settings-classes.js';
import { entriesIn, type RegistryDocument } from './registry-document.js';
import type { StoredEntries } from './stored-entries.js';

/**
 * Checks a document against the database.
 *
 * @param formViolations the violations of the classes of the entries
 * @returns all violations
 */
export async function checkDocument(
  document: RegistryDocument,
  formViolations: string[],
  stored: StoredEntries,
  settingsClasses: GrantSettingsClasses,
): Promise<string[]> {
  const violations = await entryViolations({
    entriesOf: (resource) => entriesIn(document, resource),
    settingsClasses,
    isStored: (resource, key) => stored.has(resource, key),
    invalidPaths: new Set(formViolations.map((violation) => violation.replace(/: .*$/s, ''))),
  });
  return [...formViolations, ...violations];
}
