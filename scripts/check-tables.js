// @ts-check
/**
 * Checks that only the folder with the entity of a table has SQL that names the table. Another folder calls it, or
 * imports a fragment of SQL from it. scripts/tables.json has the exceptions: by table, the folders and their reasons.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';

const PROJECT = dirname(import.meta.dirname);
const SOURCES = join(PROJECT, 'src');
/** Migrations create the tables of all folders. */
const EXEMPT_FOLDER = 'migrations';

/** @type {Record<string, Record<string, string>>} */
const exceptions = JSON.parse(readFileSync(join(import.meta.dirname, 'tables.json'), 'utf8'));

/** @param {string} path @returns {string} the first folder of `src`, or the folder of a grant */
const folderOf = (path) => /^(grants\/[^/]+|[^/]+)/.exec(relative(SOURCES, path))?.[0] ?? '';

/** @param {ts.Node} node @param {(node: ts.Node) => void} visit */
function visitAll(node, visit) {
  visit(node);
  ts.forEachChild(node, (child) => visitAll(child, visit));
}

/** @param {ts.Node} node @returns {string | undefined} */
function textOf(node) {
  const isTemplatePart = ts.isTemplateHead(node) || ts.isTemplateMiddle(node) || ts.isTemplateTail(node);
  return ts.isStringLiteralLike(node) || isTemplatePart ? node.text : undefined;
}

/** @param {ts.Node} node @returns {string | undefined} the table that an `@Entity` declares */
function entityTable(node) {
  if (!ts.isDecorator(node) || !ts.isCallExpression(node.expression)) return undefined;
  const {
    expression,
    arguments: [name],
  } = node.expression;
  return expression.getText() === 'Entity' && name ? textOf(name) : undefined;
}

const files = ts.sys
  .readDirectory(SOURCES, ['.ts'])
  .filter((path) => folderOf(path) !== EXEMPT_FOLDER)
  .map((path) => ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true));

/** @type {Map<string, string>} folders by table */
const owners = new Map();
for (const file of files)
  visitAll(file, (node) => {
    const table = entityTable(node);
    if (table !== undefined) owners.set(table, folderOf(file.fileName));
  });

const TABLES = [...owners.keys()].join('|');
const NAMED = new RegExp(`\\b(?:FROM|JOIN|INTO|UPDATE)\\s+(${TABLES})\\b`, 'g');
/** A text before `${…}`, where the name of a table must follow. */
const NAME_FOLLOWS = /\b(?:FROM|JOIN|INTO|UPDATE)\s+$/;
/** A text that is the name of a table, or begins with it, as in `customer own`. */
const IS_NAME = new RegExp(`^(${TABLES})(?: \\w+)?$`);

/** @param {ts.SourceFile} file @returns {boolean} whether SQL in the file has the name of a table from elsewhere */
function interpolatesNames(file) {
  let isFound = false;
  visitAll(file, (node) => {
    const isBeforeValue = ts.isTemplateHead(node) || ts.isTemplateMiddle(node);
    if (isBeforeValue && NAME_FOLLOWS.test(node.text)) isFound = true;
  });
  return isFound;
}

/** @param {ts.Node} node @param {boolean} hasInterpolatedNames @returns {string[]} the tables that SQL names here */
function tablesNamedBy(node, hasInterpolatedNames) {
  const text = textOf(node);
  if (text === undefined) return [];
  const { parent } = node;
  const isDeletion = ts.isCallExpression(parent) && parent.expression.getText().endsWith('deleteInOrder');
  // the kind of an audited party may be the name of a table: an argument, or the property `kind`
  const isKind = ts.isCallExpression(parent) || (ts.isPropertyAssignment(parent) && parent.name.getText() === 'kind');
  const mayBeName = isDeletion || (hasInterpolatedNames && !isKind);
  const [, name] = (mayBeName ? IS_NAME.exec(text) : null) ?? [];
  return [...[...text.matchAll(NAMED)].map(([, table = '']) => table), ...(name === undefined ? [] : [name])];
}

/** @type {string[]} */
const violations = [];
/** @type {Set<string>} */
const used = new Set();
for (const file of files) {
  const hasInterpolatedNames = interpolatesNames(file);
  visitAll(file, (node) => {
    for (const table of tablesNamedBy(node, hasInterpolatedNames)) {
      const folder = folderOf(file.fileName);
      if (folder === owners.get(table)) continue;
      used.add(`${table} ${folder}`);
      if (exceptions[table]?.[folder]) continue;
      const { line } = file.getLineAndCharacterOfPosition(node.getStart());
      const at = `${relative(PROJECT, file.fileName)}:${line + 1}`;
      violations.push(`${at}: SQL names the table ${table} of src/${owners.get(table)}`);
    }
  });
}
for (const [table, folders] of Object.entries(exceptions))
  for (const folder of Object.keys(folders))
    if (!used.has(`${table} ${folder}`))
      violations.push(`scripts/tables.json: no SQL in src/${folder} names the table ${table}; remove the exception`);
for (const violation of violations) console.error(violation);
if (owners.size === 0 || violations.length > 0) process.exit(1);
