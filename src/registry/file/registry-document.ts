import { IsArray, IsInt, IsOptional, Max, Min } from 'class-validator';
import { withPauses } from '../../platform/with-pauses.js';
import { type EntriesOf, type Entry, isMapping, type PathAndEntry, validated } from '../entry.js';
import type { RegistryResource } from '../resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import type { PlainDocument } from './yaml-document.js';

/** The maximum of the MySQL type `INT`. */
const MAX_REVISION = 2_147_483_647;

/** The fields of a registry file (protocol §8.1): its revision, and a list for each resource. */
class RegistryDocument {
  /** A file with a higher revision than each file before is applied, even if its content was replaced before. */
  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(MAX_REVISION)
  revision?: number;
}

for (const { list } of REGISTRY_RESOURCES) {
  IsArray()(RegistryDocument.prototype, list);
  IsOptional()(RegistryDocument.prototype, list);
}

/** The entries have the secrets of their files. Items that are no mappings are left out. */
export async function validateDocument(plain: PlainDocument, secrets: SecretFiles): Promise<[EntriesOf, string[]]> {
  const lists = REGISTRY_RESOURCES.filter(({ list }) => Array.isArray(plain[list]));
  const empty = Object.fromEntries(lists.map(({ list }) => [list, []]));
  const [, violations] = validated(RegistryDocument, { ...plain, ...empty });
  const secretViolations: string[] = [];
  const entries = new Map<RegistryResource, PathAndEntry[]>();
  for (const resource of lists) {
    const { list, entry: type } = resource;
    const valid: PathAndEntry[] = [];
    entries.set(resource, valid);
    let index = 0;
    for await (const value of withPauses(plain[list] as unknown[])) {
      const path = `${list}[${index++}]`;
      if (!isMapping(value)) {
        violations.push(`${path}: must be a mapping`);
        continue;
      }
      const [entry, found] = validated(type, withSecrets(value, path, secrets, secretViolations), path);
      valid.push([path, entry as Entry]);
      violations.push(...found);
    }
  }
  return [(resource) => entries.get(resource) ?? [], [...secretViolations, ...violations]];
}

const SECRET_FIELDS = REGISTRY_RESOURCES.flatMap(({ secret }) => (secret ? [secret.field] : []));

/** `null` if a file cannot be read, or is not UTF-8. */
export type SecretFiles = ReadonlyMap<string, string | null>;

/** In the order of the document. */
export function secretFilesIn(document: PlainDocument): string[] {
  const entries = Object.values(document).flatMap((list) => (Array.isArray(list) ? list : []));
  return [...new Set(entries.flatMap((entry) => secretFileFields(entry).map((field) => entry[`${field}_file`])))];
}

function withSecrets(entry: Entry, path: string, secrets: SecretFiles, violations: string[]): Entry {
  const copy = { ...entry };
  for (const field of secretFileFields(entry)) {
    const secret = secrets.get(entry[`${field}_file`] as string) ?? undefined;
    if (entry[field] !== undefined) violations.push(`${path}.${field}: given twice, also as a file`);
    if (secret === undefined) violations.push(`${path}.${field}_file: the file cannot be read, or is not UTF-8`);
    copy[field] = secret ?? entry[field];
    delete copy[`${field}_file`];
  }
  return copy;
}

function secretFileFields(entry: unknown): string[] {
  return SECRET_FIELDS.filter((field) => typeof (entry as PlainDocument | null)?.[`${field}_file`] === 'string');
}
