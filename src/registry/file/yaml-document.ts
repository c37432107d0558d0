import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setImmediate as nextTick } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { type Document, parseDocument } from 'yaml';
import { portionsOf } from '../../platform/database/value-list.js';
import { prototypeKeyViolations } from '../../platform/validation-violations.js';

export type PlainDocument = Record<string, unknown>;

export type WorkerMessage = { parts: Uint8Array[] } | { violations: string[] };

/** The nodes of the parser take about 65 times the memory of the text that is parsed at once. */
const ITEMS_PER_PORTION = 200;

/** A line without indentation that is no field, item, comment or empty line. */
const OTHER_LINE = /(?:^|\n)(?!\w+:(?:\s|$)|-\s|[ \t#\r\n]|$)/;
const NO_CONTENT = /^(?:[ \t]*(?:#.*)?(?:\r?\n|$))*$/;
/** A list in block style: its key, and the indentation of its items after lines that are empty or comments. */
const LIST = /^(\w+:)[ \t]*(?:#.*)?\r?\n(?:[ \t]*(?:#.*)?\r?\n)*( *)-\s/;

/** Parsing a shorter text takes less time than starting a thread. */
const MIN_WORKER_CHARACTERS = 50_000;

const WORKER = new URL('./yaml-worker.js', import.meta.url);

/** A violation has a position or a path but no value, because a value may be a secret. */
export class RegistryFileError extends Error {
  constructor(readonly violations: string[]) {
    super(`the registry file is invalid:\n${violations.map((violation) => `  ${violation}`).join('\n')}`);
  }
}

/** A thread parses a long text, and its result is read in parts, so that the process serves requests. */
export async function parseRegistryText(text: string): Promise<PlainDocument> {
  // without the compiled program of the thread, as in tests that run the sources
  if (text.length < MIN_WORKER_CHARACTERS || !existsSync(WORKER)) return parseYaml(text);
  const worker = new Worker(WORKER, { workerData: text });
  const [message]: WorkerMessage[] = await once(worker, 'message').finally(() => worker.terminate());
  if (message && 'parts' in message) return joined(message.parts);
  throw new RegistryFileError(message?.violations ?? []);
}

async function joined(parts: Uint8Array[]): Promise<PlainDocument> {
  const document: PlainDocument = {};
  for (const part of parts) {
    for (const [name, value] of Object.entries(deserialize(part))) {
      const list = document[name];
      if (Array.isArray(list) && Array.isArray(value)) list.push(...value);
      else document[name] = value;
    }
    await nextTick();
  }
  return document;
}

/**
 * The parser needs memory for the whole text. If a portion is no YAML, the whole text is parsed: a violation has the
 * line of the whole text, and an alias may name an anchor of another portion. A list of a part continues the list of
 * the part before.
 */
export function parseInPortions(text: string): PlainDocument[] {
  try {
    return yamlPortions(text).map(parseYaml);
  } catch {
    return [parseYaml(text)];
  }
}

export function yamlPortions(text: string): string[] {
  const fields = text.split(/(?<=\n)(?=\w+:\s)/);
  const names = fields.map((field) => /^\w+:/.exec(field)?.[0]);
  const beginsWithField = names[0] !== undefined || NO_CONTENT.test(fields[0] ?? '');
  if (!beginsWithField || OTHER_LINE.test(text) || new Set(names).size < names.length) return [text];
  return fields.flatMap((field) => {
    const [, key, indentation] = LIST.exec(field) ?? [];
    if (key === undefined) return [field];
    const items = field.slice(key.length).split(new RegExp(`(?<=\\n)(?=${indentation}-\\s)`));
    return [...portionsOf(items, ITEMS_PER_PORTION)].map((some) => `${key}\n${some.join('')}`);
  });
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
