import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import type { PlainDocument } from './yaml-document.js';

const SECRET_FIELDS = REGISTRY_RESOURCES.flatMap(({ secret }) => (secret ? [secret.field] : []));

/** The paths of the secret files that a document names (`client_secret_file`), in the order of the document. */
export function secretFilesIn(document: PlainDocument): string[] {
  const files: string[] = [];
  replaceSecretFiles(document, (_, file) => {
    files.push(file);
    return undefined;
  });
  return files;
}

/**
 * A copy of a document with secrets instead of the names of their files; also returns the violations.
 *
 * @param secrets the contents of the files, in the order of `secretFilesIn`; `null` for a file that cannot be read
 */
export function withSecrets(document: PlainDocument, secrets: (string | null)[]): [PlainDocument, string[]] {
  const violations: string[] = [];
  let index = 0;
  const replaced = replaceSecretFiles(
    document,
    (path) => {
      const secret = secrets[index++] ?? undefined;
      if (secret === undefined) violations.push(`${path}_file: the file cannot be read`);
      return secret;
    },
    violations,
  );
  return [replaced, violations];
}

function replaceSecretFiles(
  document: PlainDocument,
  secretOf: (path: string, file: string) => string | undefined,
  violations: string[] = [],
): PlainDocument {
  const replaced = Object.entries(document).map(([list, entries]) => {
    if (!Array.isArray(entries)) return [list, entries];
    return [
      list,
      entries.map((entry, index) => {
        const fields = SECRET_FIELDS.filter((field) => entry && typeof entry[`${field}_file`] === 'string');
        if (fields.length === 0) return entry;
        const copy = { ...entry };
        for (const field of fields) {
          const path = `${list}[${index}].${field}`;
          if (entry[field] !== undefined) violations.push(`${path}: given twice, also as a file`);
          copy[field] = secretOf(path, entry[`${field}_file`]) ?? copy[field];
          delete copy[`${field}_file`];
        }
        return copy;
      }),
    ];
  });
  return Object.fromEntries(replaced);
}
