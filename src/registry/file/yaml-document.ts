import { existsSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { type Document, parseDocument } from 'yaml';
import { prototypeKeyViolations } from '../../platform/validation-violations.js';

/** A part of a document that is a document itself. */
interface YamlPortion {
  /** The top-level list of the portion; `undefined` for the fields that are no lists in block style. */
  list: string | undefined;
  lines: string[];
  itemCount: number;
}

const ITEMS_PER_PORTION = 200;

const LIST_KEY = /^([A-Za-z_]+):[ \t]*(#.*)?\r?$/;
const FIELD = /^([A-Za-z_]+):[ \t]/;
const ITEM = /^( *)-[ \t]/;
const CONTINUATION = /^([ \t#]|\r?$)/;

/**
 * Splits a text at the items of its top-level lists, because the parser needs memory for the whole text that it parses.
 * `undefined` if the text has another form.
 *
 * A portion can be no YAML, for example if a quoted text contains a line that looks like an item, or if an alias names
 * an anchor of another portion. The whole text must then be parsed.
 */
export function yamlPortions(text: string): YamlPortion[] | undefined {
  const fields: YamlPortion = { list: undefined, lines: [], itemCount: 0 };
  const portions = [fields];
  const names = new Set<string>();
  let current = fields;
  let indentation: number | undefined;
  for (const line of text.split('\n')) {
    const list = LIST_KEY.exec(line)?.[1];
    const name = list ?? FIELD.exec(line)?.[1];
    if (name !== undefined) {
      if (names.has(name)) return undefined;
      names.add(name);
    }
    const itemIndentation = ITEM.exec(line)?.[1]?.length;
    if (list !== undefined) {
      current = { list, lines: [`${list}:`], itemCount: 0 };
      indentation = undefined;
      portions.push(current);
    } else if (name !== undefined) {
      current = fields;
      fields.lines.push(line);
    } else if (current.list !== undefined && itemIndentation !== undefined) {
      indentation ??= itemIndentation;
      if (itemIndentation === indentation) {
        if (current.itemCount === ITEMS_PER_PORTION) {
          current = { list: current.list, lines: [`${current.list}:`], itemCount: 0 };
          portions.push(current);
        }
        current.itemCount++;
      }
      current.lines.push(line);
    } else if (CONTINUATION.test(line)) current.lines.push(line);
    else return undefined;
  }
  return portions;
}

/** A registry file before its fields are validated. */
export type PlainDocument = Record<string, unknown>;

/** What the thread that parses a registry file sends. */
export type WorkerMessage =
  | { violations: string[] }
  | { fields: PlainDocument }
  | { list: string; items: unknown[] }
  | { restart: true }
  | { isDone: true };

/** Parsing a shorter text takes less time than starting a thread. */
const MIN_WORKER_CHARACTERS = 50_000;

const WORKER = new URL('./yaml-worker.js', import.meta.url);

/** A text that is no registry file. Each violation has a position or a path, but no value, which may be a secret. */
export class RegistryTextError extends Error {
  constructor(readonly violations: string[]) {
    super('the registry file is no valid YAML');
  }
}

/**
 * Parses the text of a registry file. A long text is parsed in a thread of its own, so that the process serves requests
 * meanwhile. Its lists arrive in portions for the same reason.
 *
 * @throws RegistryTextError
 */
export async function parseRegistryText(text: string): Promise<PlainDocument> {
  // without the compiled program of the thread, as in tests that run the sources
  if (text.length < MIN_WORKER_CHARACTERS || !existsSync(WORKER)) return parseYaml(text);
  const worker = new Worker(WORKER, { workerData: text });
  try {
    return await documentOf(worker);
  } finally {
    await worker.terminate();
  }
}

function documentOf(worker: Worker): Promise<PlainDocument> {
  let document: PlainDocument = {};
  return new Promise((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the thread that parses the registry file ended')));
    worker.on('message', (message: WorkerMessage) => {
      if ('violations' in message) reject(new RegistryTextError(message.violations));
      if ('fields' in message) Object.assign(document, message.fields);
      if ('list' in message) document[message.list] = appended(document[message.list], message.items);
      if ('restart' in message) document = {};
      if ('isDone' in message) resolve(document);
    });
  });
}

function appended(list: unknown, items: unknown[]): unknown[] {
  if (!Array.isArray(list)) return items;
  list.push(...items);
  return list;
}

/** @throws RegistryTextError if the text is not YAML, or a field has the name of a prototype property */
export function parseYaml(text: string): PlainDocument {
  const yaml = parseDocument(text);
  // only the position and the code, because the messages of the library quote the line, which may contain a secret
  const violations = yaml.errors.map(({ code, linePos }) => `line ${linePos?.[0].line ?? '?'}: ${code}`);
  if (violations.length > 0) throw new RegistryTextError(violations);
  const value = toPlain(yaml) ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new RegistryTextError(['must be a mapping']);
  const prototypeKeys = prototypeKeyViolations(value);
  if (prototypeKeys.length > 0) throw new RegistryTextError(prototypeKeys);
  return value as PlainDocument;
}

function toPlain(yaml: Document): unknown {
  try {
    return yaml.toJS({ reviver: withoutEmptyFields });
  } catch {
    throw new RegistryTextError(['an alias has no anchor, or expands to too many nodes']);
  }
}

/** An empty field counts as omitted; an empty item of a list is a violation. */
function withoutEmptyFields(this: unknown, _key: unknown, value: unknown): unknown {
  return value === null && !Array.isArray(this) ? undefined : value;
}
