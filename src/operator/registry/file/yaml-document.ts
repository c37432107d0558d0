import type { CST, Document, LineCounter } from 'yaml';
import { loadWhenUsed } from '../../../platform/load-when-used.js';
import { prototypeKeyViolations } from '../../../platform/validation/violations.js';

const yaml = () => loadWhenUsed<typeof import('yaml')>('yaml');

export type PlainDocument = Record<string, unknown>;

/** The nodes of the parser take about 65 times the memory of the text. */
const MAX_TEXT_CHARACTERS = 8_388_608;

/** A valid file nests about 10 levels. Composing nested nodes is recursive. */
const MAX_LEVELS = 64;

/** Directives, tags, anchors and commas before one node. The parser keeps an error for each one too many. */
const MAX_PREFIX_ITEMS = 8;
const PREFIX_ITEM = /^[&!%,]/;
const SPACE_OR_COMMENT = /^(\s*$|#)/;

/** The log gets all violations, and a wrong text can have an error in each line. */
const MAX_ERRORS = 100;

/** A violation has a position or a path but no value, because a value may be a secret. */
export class RegistryFileError extends Error {
  constructor(readonly violations: string[]) {
    super(`the registry file is invalid:\n${violations.map((violation) => `  ${violation}`).join('\n')}`);
  }
}

/** @throws RegistryFileError if the text is not YAML, or a field has the name of a prototype property */
export function parseYaml(text: string): PlainDocument {
  if (text.trim() === '') throw new RegistryFileError(['the file is empty']); // a full disk may leave such a file
  if (text.length > MAX_TEXT_CHARACTERS) throw new RegistryFileError(['the file is longer than 8 MB']);
  const { Composer, LineCounter } = yaml();
  const lines = new LineCounter();
  const documents = new Composer().compose(tokensOf(text, lines), true, text.length);
  const document = documents.next().value as Document.Parsed;
  const next = documents.next();
  // only the position and the code, because the messages of the library quote the line, which may contain a secret
  const reported = document.errors.slice(0, MAX_ERRORS);
  const violations = reported.map(({ code, pos }) => `line ${lines.linePos(pos[0]).line}: ${code}`);
  if (document.errors.length > MAX_ERRORS) violations.push(`and ${document.errors.length - MAX_ERRORS} more errors`);
  if (!next.done) violations.push(`line ${lines.linePos(next.value.range[0]).line}: MULTIPLE_DOCS`);
  if (violations.length > 0) throw new RegistryFileError(violations);
  const value = toPlain(document) ?? {};
  if (typeof value !== 'object' || Array.isArray(value)) throw new RegistryFileError(['must be a mapping']);
  const prototypeKeys = prototypeKeyViolations(value);
  if (prototypeKeys.length > 0) throw new RegistryFileError(prototypeKeys);
  return value as PlainDocument;
}

/** @throws RegistryFileError if the text would exhaust the stack or the memory when its nodes are composed */
function* tokensOf(text: string, lines: LineCounter): Generator<CST.Token, void> {
  const { Lexer, Parser } = yaml();
  const parser = new Parser(lines.addNewLine);
  const violation = (rule: string) => new RegistryFileError([`line ${lines.linePos(parser.offset).line}: ${rule}`]);
  let prefixItems = 0;
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MAX_LEVELS) throw violation(`nested deeper than ${MAX_LEVELS} levels`);
    if (PREFIX_ITEM.test(lexeme)) prefixItems++;
    else if (!SPACE_OR_COMMENT.test(lexeme)) prefixItems = 0;
    if (prefixItems > MAX_PREFIX_ITEMS) throw violation('too many tags, anchors, directives or commas');
  }
  yield* parser.end();
}

function toPlain(document: Document): unknown {
  try {
    return document.toJS({ reviver: withoutEmptyFields });
  } catch {
    throw new RegistryFileError(['an alias has no anchor, or expands to too many nodes']);
  }
}

/** An empty secret could be meant to remove the stored one, so that it is a violation. */
const SECRET_FIELDS: unknown[] = ['client_secret', 'secret'];

/** Another empty field counts as omitted; an empty item of a list is a violation. */
function withoutEmptyFields(this: unknown, key: unknown, value: unknown): unknown {
  return value === null && !Array.isArray(this) && !SECRET_FIELDS.includes(key) ? undefined : value;
}
