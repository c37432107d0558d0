import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { type Document, parseDocument } from 'yaml';
import { violationsOf } from '../../platform/validation-violations.js';
import { prototypeKeyViolations } from '../entries/reject-prototype-keys.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { contentOf, type FileContent } from './file-content.js';
import { RegistryDocument } from './registry-document.js';

/**
 * A registry file that is rejected as a whole. Each violation has a path but no value, because a value may be a secret.
 */
export class RegistryFileError extends Error {
  constructor(readonly violations: string[]) {
    super(`the registry file is invalid:\n${violations.map((violation) => `  ${violation}`).join('\n')}`);
  }
}

const SECRET_FIELDS = REGISTRY_RESOURCES.flatMap(({ secret }) => (secret ? [secret.field] : []));

/** A registry file that was read, with its violations. */
export interface ReadRegistryFile {
  document: RegistryDocument;
  violations: string[];
  content: FileContent;
}

/** The contents that are watched for changes: the text of the file, and of the secret files that it names. */
export interface WatchedText {
  text: string;
  secrets?: unknown;
}

/**
 * Reads a registry file and the secret files that it names by paths relative to itself. The violations are unknown
 * fields, wrong types and unreadable files.
 *
 * @throws RegistryFileError if the text is not YAML, or a field has the name of a prototype property
 */
export async function readRegistryFile(path: string): Promise<ReadRegistryFile> {
  const text = await readText(path);
  const plain = parseYaml(text);
  const prototypeKeys = prototypeKeyViolations(plain);
  if (prototypeKeys.length > 0) throw new RegistryFileError(prototypeKeys);
  const violations = await readSecretFiles(plain, dirname(path));
  const content = await contentOf(text, plain, plain.revision);
  const document = plainToInstance(RegistryDocument, plain, { exposeDefaultValues: true });
  violations.push(...violationsOf(validateSync(document, { whitelist: true, forbidNonWhitelisted: true })));
  return { document, violations, content };
}

export async function readWatchedText(path: string): Promise<WatchedText> {
  const text = await readFile(path, 'utf8');
  try {
    const plain = parseYaml(text);
    const violations = await readSecretFiles(plain, dirname(path));
    return { text, secrets: [plain, violations] };
  } catch {
    return { text }; // not YAML: the error is reported when the file is applied
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
  // only the position and the code, because the messages of the library quote the line, which may contain a secret
  const violations = yaml.errors.map(({ code, linePos }) => `line ${linePos?.[0].line ?? '?'}: ${code}`);
  if (violations.length > 0) throw new RegistryFileError(violations);
  const value = toPlain(yaml) ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new RegistryFileError(['must be a mapping']);
  return value as Record<string, unknown>;
}

function toPlain(yaml: Document): unknown {
  try {
    return yaml.toJS({ reviver: withoutEmptyFields });
  } catch {
    throw new RegistryFileError(['an alias has no anchor, or expands to too many nodes']);
  }
}

/** An empty field counts as omitted; an empty item of a list is a violation. */
function withoutEmptyFields(this: unknown, _key: unknown, value: unknown): unknown {
  return value === null && !Array.isArray(this) ? undefined : value;
}

/** Replaces each `FIELD_file` of a secret by the secret in that file; returns the violations. */
async function readSecretFiles(plain: Record<string, unknown>, folder: string): Promise<string[]> {
  const violations: string[] = [];
  for (const [list, entries] of Object.entries(plain)) {
    for (const [index, entry] of Array.isArray(entries) ? entries.entries() : []) {
      for (const secret of SECRET_FIELDS.filter((name) => entry && typeof entry[`${name}_file`] === 'string')) {
        const path = `${list}[${index}].${secret}`;
        if (entry[secret] !== undefined) violations.push(`${path}: given twice, also as a file`);
        try {
          entry[secret] = (await readFile(resolve(folder, entry[`${secret}_file`]), 'utf8')).trim();
        } catch {
          violations.push(`${path}_file: the file cannot be read`);
        }
        delete entry[`${secret}_file`];
      }
    }
  }
  return violations;
}
