import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const PROJECT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(PROJECT, path), 'utf8');

/** The fenced blocks of a page whose first line names a file after the language: ```ts src/main.ts */
function quotations(page: string): { file: string; text: string }[] {
  const fences = read(page).matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms);
  return Array.from(fences, ([, file = '', text = '']) => ({ file, text }));
}

const pages = readdirSync(join(PROJECT, 'docs')).filter((name) => name.endsWith('.md'));
const quoted = pages.flatMap((name) => quotations(`docs/${name}`).map((quotation) => ({ page: name, ...quotation })));

describe('the documentation', () => {
  it.each(quoted)('$page quotes $file verbatim', ({ file, text }) => {
    expect(read(file)).toContain(text);
  });

  it('shows every source file of the lotto grant', () => {
    const files = readdirSync(join(PROJECT, 'examples/lotto-grant/src')).filter((name) => name.startsWith('lotto'));
    const shown = quoted.filter(({ page }) => page === 'adding-a-grant.md');
    for (const file of files) {
      const path = `examples/lotto-grant/src/${file}`;
      expect(shown).toContainEqual({ page: 'adding-a-grant.md', file: path, text: read(path) });
    }
  });
});
