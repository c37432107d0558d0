// @ts-check
/** Reads the declarations that the service and its conformance kit export, and the declarations that these mention. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { declarationOf, isDeclaration, programOver } from './declarations.js';

const PROJECT = dirname(import.meta.dirname);
/** The folders of the packages that authors of extensions install. */
const PACKAGES = ['.', 'packages/conformance-kit'];
/** The entry of the service that only the conformance kit may import (docs/decisions/0018). */
const ENTRY_OF_THE_KIT = './testing-host';

/** @typedef {{ name: string, purpose: string, members: string[], text: string, typeOnly: boolean }} Declaration */

/**
 * The declarations of each entry, and those that these mention.
 * @returns {{ title: string, declarations: Declaration[] }[]}
 */
export function publicSurface() {
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
    return { title, declarations: symbols.map((symbol) => described(checker, symbol, typesOnly.has(symbol))) };
  });
  const importable = symbolsSeen.size;
  // iterating over a Set includes elements that are added meanwhile, so this also finds indirect mentions
  for (const symbol of symbolsSeen) for (const other of mentionedBy(checker, symbol)) symbolsSeen.add(other);
  const mentioned = [...symbolsSeen].slice(importable);
  const declarations = mentioned.map((symbol) => described(checker, symbol, false));
  return [...sections, { title: 'Mentioned, and not importable', declarations }];
}

/** @param {ts.TypeChecker} checker @param {ts.Symbol} symbol @param {boolean} typeOnly @returns {Declaration} */
function described(checker, symbol, typeOnly) {
  const comment = ts.displayPartsToString(symbol.getDocumentationComment(checker)).replaceAll(/\s+/g, ' ');
  const [purpose = ''] = comment.split(/(?<=\.)\s+(?=[A-Z`])/);
  const members = symbol.declarations?.flatMap((node) => membersOf(publicPart(node))) ?? [];
  return { name: symbol.name, purpose, members, text: textOf(symbol), typeOnly };
}

/** The names of the members of a class or an interface. @param {ts.Node} node */
function membersOf(node) {
  if (!ts.isClassDeclaration(node) && !ts.isInterfaceDeclaration(node)) return [];
  return node.members.flatMap(({ name }) => (name && ts.isIdentifier(name) ? [name.text] : []));
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
