import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { type Document, parseDocument } from 'yaml';
import { prototypeKeyViolations } from '../../platform/validation-violations.js';

/** A registry file before its fields are validated. */
export type PlainDocument = Record<string, unknown>;

/** What the thread that parses a registry file sends. */
export type WorkerMessage = { document?: PlainDocument; violations?: string[] };

/** Parsing a shorter text takes less time than starting a thread. */
const MIN_WORKER_CHARACTERS = 50_000;

const WORKER = new URL('./yaml-worker.js', import.meta.url);

/**
 * A registry file that is rejected as a whole. Each violation has a position or a path but no value, because a value may
 * be a secret.
 */
export class RegistryFileError extends Error {
  constructor(readonly violations: string[]) {
    super(`the registry file is invalid:\n${violations.map((violation) => `  ${violation}`).join('\n')}`);
  }
}

/**
 * Parses the text of a registry file. A long text is parsed in a thread of its own, so that the process serves requests
 * meanwhile.
 *
 * @throws RegistryFileError
 */
export async function parseRegistryText(text: string): Promise<PlainDocument> {
  // without the compiled program of the thread, as in tests that run the sources
  if (text.length < MIN_WORKER_CHARACTERS || !existsSync(WORKER)) return parseYaml(text);
  const worker = new Worker(WORKER, { workerData: text });
  try {
    const [{ document, violations = [] }] = (await once(worker, 'message')) as [WorkerMessage];
    if (!document) throw new RegistryFileError(violations);
    return document;
  } finally {
    await worker.terminate();
  }
}

/** @throws RegistryFileError if the text is not YAML, or a field has the name of a prototype property */
export function parseYaml(text: string): PlainDocument {
  const yaml = parseDocument(text);
  // only the position and the code, because the messages of the library quote the line, which may contain a secret
  const violations = yaml.errors.map(({ code, linePos }) => `line ${linePos?.[0].line ?? '?'}: ${code}`);
  if (violations.length > 0) throw new RegistryFileError(violations);
  const value = toPlain(yaml) ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new RegistryFileError(['must be a mapping']);
  const prototypeKeys = prototypeKeyViolations(value);
  if (prototypeKeys.length > 0) throw new RegistryFileError(prototypeKeys);
  return value as PlainDocument;
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
