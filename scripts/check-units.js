// @ts-check
/**
 * Checks that the name of each numeric constant says its unit or quantity: a suffix such as _MS or _COUNT, or a counted
 * noun after MAX_ or MIN_ or before _PER_. scripts/units.json lists the suffixes and the nouns.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import ts from 'typescript';

const PROJECT = dirname(import.meta.dirname);
const FOLDERS = ['src', 'test', 'scripts', 'bench', 'examples', 'packages'];
const UPPER_CASE = /^[A-Z][A-Z0-9_]*$/;

/** @type {{ suffixes: string[], countedNouns: string[] }} */
const { suffixes, countedNouns } = JSON.parse(readFileSync(join(import.meta.dirname, 'units.json'), 'utf8'));
const NOUN = `(${countedNouns.join('|')})`;
const WITH_UNIT = new RegExp(`_(${suffixes.join('|')})$|^(MAX|MIN)_(.+_)?${NOUN}$|${NOUN}_PER_`);

/**
 * Numbers, arithmetic with a number, `Number(…)` and `Date.UTC(…)`.
 * @param {ts.Node} node
 * @returns {boolean}
 */
function isNumeric(node) {
  if (ts.isNumericLiteral(node)) return true;
  if (ts.isPrefixUnaryExpression(node)) return isNumeric(node.operand);
  if (ts.isParenthesizedExpression(node)) return isNumeric(node.expression);
  if (ts.isBinaryExpression(node)) return isNumeric(node.left) || isNumeric(node.right);
  return ts.isCallExpression(node) && /^(Number|Date\.UTC)$/.test(node.expression.getText());
}

/** @param {ts.Node} node @returns {node is ts.VariableDeclaration | ts.PropertyDeclaration} */
function isConstant(node) {
  if (ts.isPropertyDeclaration(node)) return (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Static) !== 0;
  return ts.isVariableDeclaration(node);
}

/** @param {ts.SourceFile} file @returns {ts.Identifier[]} names of numeric constants without a unit */
function namesWithoutUnit(file) {
  /** @type {ts.Identifier[]} */
  const found = [];
  /** @param {ts.Node} node */
  const visit = (node) => {
    if (isConstant(node) && node.initializer && ts.isIdentifier(node.name) && isNumeric(node.initializer)) {
      if (UPPER_CASE.test(node.name.text) && !WITH_UNIT.test(node.name.text)) found.push(node.name);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

const paths = FOLDERS.flatMap((folder) =>
  ts.sys.readDirectory(join(PROJECT, folder), ['.ts', '.js'], ['**/node_modules', '**/dist']),
);
const violations = paths.flatMap((path) => {
  const file = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true);
  return namesWithoutUnit(file).map((name) => {
    const { line } = file.getLineAndCharacterOfPosition(name.getStart());
    return `${relative(PROJECT, path)}:${line + 1}: ${name.text} has no unit of scripts/units.json`;
  });
});
for (const violation of violations) console.error(violation);
if (paths.length === 0 || violations.length > 0) process.exit(1);
