import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const PROJECT = join(import.meta.dirname, '../..');
const PAGES = ['docs/security.md', 'docs/security-compliance.md'];
const pages = PAGES.map((path) => readFileSync(join(PROJECT, path), 'utf8')).join('\n');
const rows = pages.split('\n').filter((line) => line.startsWith('| '));

/** `e2e/races › title` on a page: a title in test/e2e/races.e2e-spec.ts. */
const REFERENCE = /`(e2e|unit|browser)\/([\w-]+) › ([^`]+)`/g;
const references = Array.from(pages.matchAll(REFERENCE), ([, kind, name, title]) => ({
  file: `test/${kind}/${name}.${kind === 'e2e' ? 'e2e-spec' : 'spec'}.ts`,
  title: title as string,
}));

/** Every title of a test or a group of tests in a file, as it is written there. */
function titlesOf(file: string): Set<string> {
  const titles = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && /^(it|describe)\b/.test(node.expression.getText())) {
      const [title] = node.arguments;
      if (title && (ts.isStringLiteralLike(title) || ts.isTemplateExpression(title)))
        titles.add(title.getText().slice(1, -1));
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, readFileSync(join(PROJECT, file), 'utf8'), ts.ScriptTarget.Latest, true));
  return titles;
}

describe('docs/security.md and docs/security-compliance.md', () => {
  const files = [...new Set(references.map(({ file }) => file))].sort();

  it.each(files)('name only tests that exist in %s', (file) => {
    expect(existsSync(join(PROJECT, file))).toBe(true);
    const titles = titlesOf(file);
    const named = references.filter((reference) => reference.file === file).map(({ title }) => title);
    expect(named.filter((title) => !titles.has(title))).toEqual([]);
  });

  it('name tests only in the form that this test reads', () => {
    expect(pages.split('›').length - 1).toBe(references.length);
  });

  it('name a test in each row that says met', () => {
    const met = rows.filter((row) => row.split(' | ').includes('met'));
    expect(met.length).toBeGreaterThan(50);
    expect(met.filter((row) => !row.includes(' › '))).toEqual([]);
  });
});
