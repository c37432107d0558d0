import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { IsArray, IsOptional } from 'class-validator';
import { type EntryKind, listOf } from '../../../registry/entries/entry-kind.js';
import { ENTRY_KINDS } from '../../../registry/entries/entry-kinds.js';
import { type Entry, isMapping, ListedEntries, validated } from '../entry.js';
import { parseYaml, RegistryFileError } from './yaml-document.js';

/** The fields of a registry file (protocol §8.1). */
class RegistryFileFields {
  @IsOptional()
  @IsArray()
  organizations?: unknown[];

  @IsOptional()
  @IsArray()
  clients?: unknown[];

  @IsOptional()
  @IsArray()
  resource_servers?: unknown[];

  @IsOptional()
  @IsArray()
  agents?: unknown[];
}

export interface ParsedRegistryFile {
  /** With the secrets of their files. Items that are no mappings are left out. */
  entries: ListedEntries;
  /** The fields of the secret files that cannot be read. */
  unreadable: string[];
}

/** @throws RegistryFileError if the file cannot be read, or is no YAML */
export async function parseRegistryFile(path: string): Promise<ParsedRegistryFile> {
  const text = await readText(path).catch(() => {
    throw new RegistryFileError(['the file cannot be read']);
  });
  if (text === undefined) throw new RegistryFileError(['must be UTF-8']);
  const plain = parseYaml(text);
  const lists = ENTRY_KINDS.filter((kind) => Array.isArray(plain[listOf(kind)]));
  const emptyLists = Object.fromEntries(lists.map((kind) => [listOf(kind), []]));
  const [, violations] = validated(RegistryFileFields, { ...plain, ...emptyLists });
  const secrets: SecretFiles = { folder: dirname(path), violations: [], unreadable: [] };
  const entries = new ListedEntries();
  entries.violations.push(...violations);
  for (const kind of lists) {
    for (const [index, value] of (plain[listOf(kind)] as unknown[]).entries()) {
      const path = `${listOf(kind)}[${index}]`;
      if (isMapping(value)) entries.add(kind, path, await withSecret(kind, value, path, secrets));
      else entries.violations.push(`${path}: must be a mapping`);
    }
  }
  entries.violations.unshift(...secrets.violations);
  return { entries, unreadable: secrets.unreadable };
}

interface SecretFiles {
  folder: string;
  violations: string[];
  unreadable: string[];
}

/** Of each valid length. It takes the place of a secret whose file cannot be read, so that the entry has one. */
const PLACEHOLDER = '-'.repeat(32);

/** An entry may name a file in place of its secret: `client_secret_file`. */
async function withSecret({ secret }: EntryKind, entry: Entry, path: string, files: SecretFiles) {
  if (secret && entry[secret.field] === null)
    files.violations.push(`${path}.${secret.field}: must not be null; a PATCH with null removes a secret`);
  const name = secret && entry[`${secret.field}_file`];
  if (!secret || typeof name !== 'string') return entry;
  const { [`${secret.field}_file`]: _, ...copy } = entry;
  if (copy[secret.field] !== undefined) files.violations.push(`${path}.${secret.field}: given twice, also as a file`);
  const text = await readText(resolve(files.folder, name)).catch(() => undefined);
  if (text === undefined) files.unreadable.push(`${path}.${secret.field}_file`);
  return { ...copy, [secret.field]: text?.trim() ?? PLACEHOLDER };
}

/** `undefined` if the file is not UTF-8. */
async function readText(path: string): Promise<string | undefined> {
  const bytes = await readFile(path);
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}
