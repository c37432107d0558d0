import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setImmediate as nextTick } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { Composer, type CST, type Document, Lexer, LineCounter, Parser } from 'yaml';
import { portionsOf } from '../../platform/database/value-list.js';
import { prototypeKeyViolations } from '../../platform/validation-violations.js';

export type PlainDocument = Record<string, unknown>;

export type WorkerMessage = { parts: Uint8Array[] } | { violations: string[] };

/** The nodes of the parser take about 65 times the memory of the text that is parsed at once. */
const ITEMS_PER_PORTION = 200;

/** A line without indentation that is no field, item, comment or empty line. */
const OTHER_LINE = /(?:^|\n)(?!\w+:(?:\s|$)|-\s|[ \t#\r\n]|$)/;
const NO_CONTENT = /^\s*(?:#|$)/;
/** A list in block style: its key, and the indentation of its items after lines that are empty or comments. */
const LIST = /^(\w+:)[ \t]*(?:#.*)?\r?\n(?:[ \t]*(?:#.*)?\r?\n)*( *)-\s/;

/** Parsing a shorter text takes less time than starting a thread. */
const MIN_WORKER_CHARACTERS = 50_000;

/** A valid file nests about 10 levels. The parser needs megabytes for some thousand levels of a short text. */
const MAX_LEVELS = 64;

/** Directives, tags and anchors before one node. The parser keeps an error for each one too many. */
const MAX_PREFIX_ITEMS = 8;
const PREFIX_ITEM = /^[&!%]/;
const SPACE_OR_COMMENT = /^(\s*$|#)/;

/** A wrong text can have an error per character, and the log gets all violations. */
const MAX_ERRORS_COUNT = 100;

/** If a text needs more memory than a valid one, the thread ends, and not the process. */
const BASE_MEMORY_MEBIBYTES = 128;
const MEMORY_FACTOR = 80;

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
  const maxOldGenerationSizeMb = BASE_MEMORY_MEBIBYTES + Math.ceil((MEMORY_FACTOR * text.length) / 1_048_576);
  const worker = new Worker(WORKER, { workerData: text, resourceLimits: { maxOldGenerationSizeMb } });
  const [message]: WorkerMessage[] = await once(worker, 'message')
    .catch(({ code, name }) => {
      throw new RegistryFileError([`cannot be parsed: ${code ?? name}`]); // its message may quote the text
    })
    .finally(() => worker.terminate());
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
  const beginsWithField =
    names[0] !== undefined || (fields[0] ?? '').split('\n').every((line) => NO_CONTENT.test(line));
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
  const lines = new LineCounter();
  const documents = new Composer().compose(tokensOf(text, lines), true, text.length);
  const yaml = documents.next().value as Document.Parsed;
  const next = documents.next();
  // only the position and the code, because the messages of the library quote the line, which may contain a secret
  const reported = yaml.errors.slice(0, MAX_ERRORS_COUNT);
  const violations = reported.map(({ code, pos }) => `line ${lines.linePos(pos[0]).line}: ${code}`);
  if (yaml.errors.length > MAX_ERRORS_COUNT)
    violations.push(`and ${yaml.errors.length - MAX_ERRORS_COUNT} more errors`);
  if (!next.done) violations.push(`line ${lines.linePos(next.value.range[0]).line}: MULTIPLE_DOCS`);
  if (violations.length > 0) throw new RegistryFileError(violations);
  const value = toPlain(yaml) ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new RegistryFileError(['must be a mapping']);
  const prototypeKeys = prototypeKeyViolations(value);
  if (prototypeKeys.length > 0) throw new RegistryFileError(prototypeKeys);
  return value as PlainDocument;
}

/** @throws RegistryFileError if nodes are nested too deeply, before they are composed, which is recursive */
function* tokensOf(text: string, lines: LineCounter): Generator<CST.Token, void> {
  const parser = new Parser(lines.addNewLine);
  const violation = (rule: string) => new RegistryFileError([`line ${lines.linePos(parser.offset).line}: ${rule}`]);
  let prefixItems = 0;
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_LEVELS) throw violation(`nested deeper than ${MAX_LEVELS} levels`);
    if (PREFIX_ITEM.test(lexeme)) prefixItems++;
    else if (!SPACE_OR_COMMENT.test(lexeme)) prefixItems = 0;
    if (prefixItems > MAX_PREFIX_ITEMS) throw violation('too many tags, anchors or directives');
  }
  yield* parser.end();
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
