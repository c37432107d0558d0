// @ts-check
/**
 * Writes docs/public-surface.md: the declarations that the service and its conformance kit export, and the declarations
 * that these mention.
 * `npm run check:surface` fails if the page is out of date. `npm run update:surface` updates it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { declarationOf, isDeclaration, programOver } from './declarations.js';

const PROJECT = dirname(import.meta.dirname);
const PAGE = join(PROJECT, 'docs/public-surface.md');
/** The folders of the packages that authors of extensions install. */
const PACKAGES = ['.', 'packages/conformance-kit'];
/** The entry of the service that only the conformance kit may import (docs/decisions/0018). */
const ENTRY_OF_THE_KIT = './testing-host';
const HEAD = `# The public surface

This page lists every name that another package can import, and every type that these names mention. Authors of
extensions should read it. \`npm run update:surface\` generates it from the declarations of the build, and
\`npm run check:surface\` compares it with them. [Decision 0018](decisions/0018-public-surface.md) says what may change in
which release. Private members, and constructors that only Nest calls, are omitted. A comment names the classes that
are exported as types only. They cannot be injected or extended.
`;

/** Above a class that is exported by `export type`. */
const TYPE_ONLY_NOTE = '// Only a type: the class has no value at run time.\n';

const page = report();
if (process.argv.includes('--write')) {
  writeFileSync(PAGE, page);
} else if (readFileSync(PAGE, 'utf8') !== page) {
  console.error(
    'The declarations differ from docs/public-surface.md. If the change is intended (docs/decisions/0018), run:',
  );
  console.error('  npm run update:surface');
  process.exitCode = 1;
}

function report() {
  const entries = PACKAGES.flatMap(entriesOf);
  const program = programOver(entries.map(({ source }) => source));
  const checker = program.getTypeChecker();
  /** @type {Set<ts.Symbol>} */
  const symbolsSeen = new Set();
  const sections = entries.map(({ title, source }) => {
    const file = program.getSourceFile(declarationOf(source));
    const module = file && checker.getSymbolAtLocation(file);
    const exported = module ? checker.getExportsOfModule(module) : [];
    const symbols = exported.map((symbol) => resolved(checker, symbol));
    for (const symbol of symbols) symbolsSeen.add(symbol);
    const typesOnly = new Set(symbols.filter((symbol, index) => isClass(symbol) && isTypeOnly(exported[index])));
    return section(`\`${title}\``, symbols, typesOnly);
  });
  const importable = symbolsSeen.size;
  // iterating over a Set includes elements that are added meanwhile, so this also finds indirect mentions
  for (const symbol of symbolsSeen) for (const other of mentionedBy(checker, symbol)) symbolsSeen.add(other);
  const mentioned = [...symbolsSeen].slice(importable);
  return [HEAD, ...sections, section('Mentioned, and not importable', mentioned)].join('\n');
}

/** The entries of a package, with their sources. @param {string} folder */
function entriesOf(folder) {
  /** @type {{ name: string, exports: Record<string, { types: string }> }} */
  const { name, exports } = JSON.parse(readFileSync(join(PROJECT, folder, 'package.json'), 'utf8'));
  const subpaths = Object.entries(exports).filter(([subpath]) => subpath !== ENTRY_OF_THE_KIT);
  return subpaths.map(([subpath, { types }]) => ({
    title: join(name, subpath),
    source: join(folder, types.replace('/dist/', '/src/').replace(/\.d\.ts$/, '.ts')),
  }));
}

/** @param {string} title @param {ts.Symbol[]} symbols @param {Set<ts.Symbol>} typesOnly classes that are only types */
function section(title, symbols, typesOnly = new Set()) {
  const texts = symbols
    .map((symbol) => ({ note: typesOnly.has(symbol) ? TYPE_ONLY_NOTE : '', text: textOf(symbol) }))
    .sort((one, other) => (one.text < other.text ? -1 : 1))
    .map(({ note, text }) => note + text);
  return `## ${title}\n\n\`\`\`ts\n${texts.join('\n\n')}\n\`\`\`\n`;
}

/** @param {ts.Symbol} symbol */
function isClass({ flags }) {
  return (flags & ts.SymbolFlags.Class) !== 0;
}

/** Whether an export is written as `export type`. @param {ts.Symbol | undefined} symbol */
function isTypeOnly(symbol) {
  return (symbol?.declarations ?? []).some(
    (node) => ts.isExportSpecifier(node) && (node.isTypeOnly || node.parent.parent.isTypeOnly),
  );
}

/** @param {ts.Symbol} symbol */
function textOf(symbol) {
  const printer = ts.createPrinter({ removeComments: true });
  const print = (/** @type {ts.Node} */ node) =>
    printer.printNode(ts.EmitHint.Unspecified, publicPart(node), node.getSourceFile());
  const text = declarationsOf(symbol).map(print).join('\n');
  return text.replaceAll(/^(export )?(declare )?/gm, '').replaceAll('    ', '  ');
}

/** @param {ts.Symbol} symbol */
function declarationsOf({ declarations = [] }) {
  return declarations.map((node) => (ts.isVariableDeclaration(node) ? node.parent.parent : node));
}

/**
 * A class without its private members. A constructor is removed too, if one of its parameters is a private member.
 * @param {ts.Node} node
 */
function publicPart(node) {
  if (!ts.isClassDeclaration(node)) return node;
  const hidden = new Set(node.members.filter(isPrivate).map((member) => member.name?.getText()));
  const members = node.members.filter((member) => {
    if (!ts.isConstructorDeclaration(member)) return !isPrivate(member);
    return !isPrivate(member) && !member.parameters.some(({ name }) => hidden.has(name.getText()));
  });
  const { modifiers, name, typeParameters, heritageClauses } = node;
  return ts.factory.updateClassDeclaration(node, modifiers, name, typeParameters, heritageClauses, members);
}

/** @param {ts.ClassElement} member */
function isPrivate(member) {
  const modifiers = ts.canHaveModifiers(member) ? ts.getModifiers(member) : undefined;
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword) ?? false;
}

/**
 * The declarations of this project that a declaration mentions.
 * @param {ts.TypeChecker} checker
 * @param {ts.Symbol} symbol
 */
function mentionedBy(checker, symbol) {
  /** @type {ts.Symbol[]} */
  const found = [];
  const visit = (/** @type {ts.Node} */ node) => {
    const name = ts.isIdentifier(node) ? checker.getSymbolAtLocation(node) : undefined;
    const other = name && resolved(checker, name);
    if (other?.declarations?.some(isOfProject)) found.push(other);
    ts.forEachChild(node, visit);
  };
  for (const node of declarationsOf(symbol)) visit(publicPart(node));
  return found;
}

/** @param {ts.Declaration} node */
function isOfProject(node) {
  const statement = ts.isVariableDeclaration(node) ? node.parent.parent : node;
  return ts.isSourceFile(statement.parent) && isDeclaration(statement.getSourceFile().fileName);
}

/** @param {ts.TypeChecker} checker @param {ts.Symbol} symbol */
function resolved(checker, symbol) {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}
