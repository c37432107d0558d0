import { IsArray, IsInt, IsOptional, Max, Min } from 'class-validator';
import { withPauses } from '../../platform/with-pauses.js';
import { isMapping, type PathAndEntry, validated } from '../entry.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import type { PlainDocument } from './yaml-document.js';

/** The maximum of the MySQL type `INT`. */
const MAX_REVISION = 2_147_483_647;

/** The registry file as an object (protocol §8.1), with a list for each resource. */
export class RegistryDocument {
  /** A file with a higher revision than each file before is applied, even if its content was replaced before. */
  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(MAX_REVISION)
  revision?: number;

  [list: string]: unknown;

  constructor() {
    for (const { list } of REGISTRY_RESOURCES) this[list] = [];
  }
}

for (const { list } of REGISTRY_RESOURCES) {
  IsArray()(RegistryDocument.prototype, list);
  IsOptional()(RegistryDocument.prototype, list);
}

/**
 * Validates a document and its entries by their classes. The violations are unknown fields and wrong types.
 *
 * @returns the document and its violations
 */
export async function validateDocument(plain: PlainDocument): Promise<[RegistryDocument, string[]]> {
  const lists = REGISTRY_RESOURCES.filter(({ list }) => Array.isArray(plain[list]));
  const empty = Object.fromEntries(lists.map(({ list }) => [list, []]));
  const [document, violations] = validated(RegistryDocument, { ...plain, ...empty });
  for (const { list, entry: type } of lists) {
    const entries: unknown[] = [];
    document[list] = entries;
    for await (const value of withPauses(plain[list] as unknown[])) {
      const path = `${list}[${entries.length}]`;
      const [entry, found] = isMapping(value) ? validated(type, value, path) : [value, [`${path}: must be a mapping`]];
      entries.push(entry);
      violations.push(...found);
    }
  }
  return [document, violations];
}

/**
 * The entries of a resource with their paths. Items that are no mappings are left out, because the document may be
 * invalid.
 */
export function entriesIn(document: RegistryDocument, { list }: RegistryResource): PathAndEntry[] {
  const entries: unknown = document[list];
  return (Array.isArray(entries) ? entries : [])
    .map((entry, index): PathAndEntry => [`${list}[${index}]`, entry])
    .filter(([, entry]) => isMapping(entry));
}

const SECRET_FIELDS = REGISTRY_RESOURCES.flatMap(({ secret }) => (secret ? [secret.field] : []));

/** The paths of the secret files that a document names (`client_secret_file`), in the order of the document. */
export function secretFilesIn(document: PlainDocument): string[] {
  const entries = Object.values(document).flatMap((list) => (Array.isArray(list) ? list : []));
  return entries.flatMap((entry) => secretFileFields(entry).map((field) => entry[`${field}_file`]));
}

/**
 * A copy of a document with secrets instead of the names of their files; also returns the violations.
 *
 * @param secrets the contents of the files, in the order of `secretFilesIn`; `null` for a file that cannot be read
 */
export function withSecrets(document: PlainDocument, secrets: (string | null)[]): [PlainDocument, string[]] {
  const violations: string[] = [];
  let next = 0;
  const replaced = Object.entries(document).map(([list, entries]) => {
    if (!Array.isArray(entries)) return [list, entries];
    const replace = (entry: PlainDocument, index: number) => {
      const copy = { ...entry };
      for (const field of secretFileFields(entry)) {
        const path = `${list}[${index}].${field}`;
        const secret = secrets[next++] ?? undefined;
        if (entry[field] !== undefined) violations.push(`${path}: given twice, also as a file`);
        if (secret === undefined) violations.push(`${path}_file: the file cannot be read`);
        copy[field] = secret ?? entry[field];
        delete copy[`${field}_file`];
      }
      return copy;
    };
    return [list, entries.map((entry, index) => (secretFileFields(entry).length > 0 ? replace(entry, index) : entry))];
  });
  return [Object.fromEntries(replaced), violations];
}

function secretFileFields(entry: unknown): string[] {
  return SECRET_FIELDS.filter((field) => typeof (entry as PlainDocument | null)?.[`${field}_file`] === 'string');
}
