import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { PROJECT, read } from '../support/project-files.js';

/**
 * `transfer/races › title` in a document: a title in a file `races` below `test/transfer`, or below a package's tests.
 */
const REFERENCE = /`([a-z-]+(?:\/browser)?)\/([\w-]+) › ([^`]+)`/g;

interface TestReference {
  /** For example `transfer/races`. */
  name: string;
  title: string;
}

/** The tests that a document names, in the order of the document. */
export function testReferencesIn(document: string): TestReference[] {
  return Array.from(document.matchAll(REFERENCE), ([, folder, file, title]) => ({
    name: `${folder}/${file}`,
    title: title as string,
  }));
}

/** Tests that a document names only titles that exist. */
export function itNamesOnlyTestsThatExist(references: TestReference[]): void {
  it.each([...new Set(references.map(({ name }) => name))].sort())('names only tests that exist in %s', (name) => {
    const titles = titlesOf(name);
    const named = references.filter((reference) => reference.name === name).map(({ title }) => title);
    expect(named.filter((title) => !titles.has(title))).toEqual([]);
  });
}

/** Every title of a test or of a group of tests in the files of a name, exactly as in the source. */
function titlesOf(name: string): Set<string> {
  const [subject = '', ...below] = name.split('/');
  const file = below.pop();
  const paths = [`test/${subject}`, `packages/${subject}/test`]
    .map((folder) => join(folder, ...below))
    .filter((folder) => existsSync(join(PROJECT, folder)))
    .flatMap((folder) =>
      readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
    );
  const isNamed = (path: string) => [`${file}.spec.ts`, `${file}.e2e-spec.ts`].includes(basename(path));
  return new Set(paths.filter(isNamed).flatMap(titlesIn));
}

function titlesIn(path: string): string[] {
  const titles: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && /^(it|describe)\b/.test(node.expression.getText())) {
      const [title] = node.arguments;
      if (title && (ts.isStringLiteralLike(title) || ts.isTemplateExpression(title)))
        titles.push(title.getText().slice(1, -1));
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest, true));
  return titles;
}
