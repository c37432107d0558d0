import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const PROJECT = join(import.meta.dirname, '../..');

/** `e2e/races › title` in a document: a title in test/e2e/races.e2e-spec.ts, or in a test of a package. */
const REFERENCE = /`(e2e|unit|browser|conformance-kit|try-it(?:\/browser)?)\/([\w-]+) › ([^`]+)`/g;

export interface TestReference {
  file: string;
  title: string;
}

/** The tests that a document names, in the order of the document. */
export function testReferencesIn(document: string): TestReference[] {
  return Array.from(document.matchAll(REFERENCE), ([, kind, name, title]) => ({
    file: fileOf(kind as string, name as string),
    title: title as string,
  }));
}

function fileOf(kind: string, name: string): string {
  if (kind === 'conformance-kit' || kind === 'try-it') return `packages/${kind}/test/${name}.e2e-spec.ts`;
  if (kind === 'try-it/browser') return `packages/try-it/test/browser/${name}.spec.ts`;
  return `test/${kind}/${name}.${kind === 'e2e' ? 'e2e-spec' : 'spec'}.ts`;
}

/** Every title of a test or of a group of tests in a file, exactly as in the source. */
export function titlesOf(file: string): Set<string> {
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
