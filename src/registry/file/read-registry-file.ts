import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { type Document, parseDocument } from 'yaml';
import { faultsOf } from '../../platform/validation-faults.js';
import { contentOf, type FileContent } from './file-content.js';
import { namesOfPrototypes } from './names-of-prototypes.js';
import { RegistryDocument } from './registry-document.js';

/** A registry that is refused as a whole; every fault is named with its path, none with its value. */
export class RegistryFileError extends Error {
  constructor(readonly faults: string[]) {
    super(`the registry file is refused:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
  }
}

const SECRETS = ['client_secret', 'secret', 'password'];

/** A registry file that was read, with its faults. */
export interface ReadRegistryFile {
  document: RegistryDocument;
  faults: string[];
  content: FileContent;
}

/** What a change of the file shows in: its text, and what the secret files say that it names. */
export interface WatchedText {
  text: string;
  secrets?: unknown;
}

/**
 * Reads a registry file and the secret files it names, relative to itself; with every fault of form: unknown fields,
 * wrong types, unreadable files.
 *
 * @throws RegistryFileError when it is not YAML at all, or has names of prototypes
 */
export async function readRegistryFile(path: string): Promise<ReadRegistryFile> {
  const text = await readText(path);
  const plain = parseYaml(text);
  const strange = namesOfPrototypes(plain);
  if (strange.length > 0) throw new RegistryFileError(strange);
  const faults = await readSecretFiles(plain, dirname(path));
  const content = await contentOf(text, plain, plain.revision);
  const document = plainToInstance(RegistryDocument, plain, { exposeDefaultValues: true });
  faults.push(...faultsOf(validateSync(document, { whitelist: true, forbidNonWhitelisted: true })));
  return { document, faults, content };
}

export async function readWatchedText(path: string): Promise<WatchedText> {
  const text = await readFile(path, 'utf8');
  try {
    const plain = parseYaml(text);
    const faults = await readSecretFiles(plain, dirname(path));
    return { text, secrets: [plain, faults] };
  } catch {
    return { text }; // no YAML: applying it says so
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    throw new RegistryFileError(['the file cannot be read']);
  }
}

function parseYaml(text: string): Record<string, unknown> {
  const yaml = parseDocument(text);
  // the library's messages quote the line, which may hold a secret: only the place and the kind are told
  const faults = yaml.errors.map(({ code, linePos }) => `line ${linePos?.[0].line ?? '?'}: ${code}`);
  if (faults.length > 0) throw new RegistryFileError(faults);
  const value = toPlain(yaml) ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new RegistryFileError(['must be a mapping']);
  return value as Record<string, unknown>;
}

function toPlain(yaml: Document): unknown {
  try {
    return yaml.toJS({ reviver: withoutEmptyFields });
  } catch {
    throw new RegistryFileError(['an alias names no anchor, or unfolds to too much']);
  }
}

/** An empty field is one that was left out; an empty item of a list is a fault. */
function withoutEmptyFields(this: unknown, _key: unknown, value: unknown): unknown {
  return value === null && !Array.isArray(this) ? undefined : value;
}

/** Puts the contents of `*_file` in the place of the secret they stand for; returns the faults met. */
async function readSecretFiles(plain: Record<string, unknown>, folder: string): Promise<string[]> {
  const faults: string[] = [];
  for (const [list, entries] of Object.entries(plain)) {
    for (const [index, entry] of Array.isArray(entries) ? entries.entries() : []) {
      for (const secret of SECRETS.filter((name) => entry && typeof entry[`${name}_file`] === 'string')) {
        const path = `${list}[${index}].${secret}`;
        if (entry[secret] !== undefined) faults.push(`${path}: given twice, also as a file`);
        try {
          entry[secret] = (await readFile(resolve(folder, entry[`${secret}_file`]), 'utf8')).trim();
        } catch {
          faults.push(`${path}_file: the file cannot be read`);
        }
        delete entry[`${secret}_file`];
      }
    }
  }
  return faults;
}
