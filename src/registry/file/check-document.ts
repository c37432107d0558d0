import { entryViolations } from '../entries/entry-checks.js';
import type { GrantSettingsClasses } from '../grant-settings-classes.js';
import { entriesIn, type RegistryDocument } from './registry-document.js';
import { warningsOf } from './registry-warnings.js';
import type { StoredEntries } from './stored-entries.js';
import { unchangedShortSecrets } from './unchanged-short-secrets.js';

interface CheckedDocument {
  violations: string[];
  /** Paths whose violation is tolerated, because the short password is the stored one. */
  toleratedPaths: string[];
  /** Warnings about a document that is accepted. */
  warnings: string[];
}

/**
 * Checks a document against the database.
 *
 * @param formViolations the violations of the classes of the entries
 */
export async function checkDocument(
  document: RegistryDocument,
  formViolations: string[],
  stored: StoredEntries,
  settingsClasses: GrantSettingsClasses,
): Promise<CheckedDocument> {
  const unchanged = await unchangedShortSecrets(document, stored);
  const tolerated = unchanged.filter(({ violation }) => formViolations.includes(violation));
  const remaining = formViolations.filter((each) => !tolerated.some(({ path }) => each.startsWith(`${path}: `)));
  const violations = await entryViolations({
    entriesOf: (resource) => entriesIn(document, resource),
    settingsClasses,
    isStored: (resource, key) => stored.has(resource, key),
    invalidPaths: new Set(formViolations.map((violation) => violation.replace(/: .*$/s, ''))),
    unchangedSecrets: new Set(unchanged.map(({ path }) => path)),
  });
  const shortSecrets = unchanged.filter((each) => !tolerated.includes(each));
  return {
    violations: [...remaining, ...violations.filter((violation) => !formViolations.includes(violation))],
    toleratedPaths: tolerated.map(({ path }) => path),
    warnings: warningsOf(
      document,
      stored,
      shortSecrets.map(({ path }) => path),
    ),
  };
}
