import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { blocksOf } from '../support/page-blocks.js';
import { PROJECT, read } from '../support/project-files.js';

const pages = ['docs', 'docs/integrating'].flatMap((folder) =>
  readdirSync(join(PROJECT, folder))
    .filter((name) => name.endsWith('.md') || name === 'llms.txt')
    .map((name) => join(folder, name).slice('docs/'.length)),
);
const quoted = [...pages.map((page) => `docs/${page}`), 'examples/device-approval/README.md'].flatMap((path) =>
  blocksOf(path)
    .filter(({ file }) => file !== '')
    .map(({ file, text }) => ({ page: path.replace(/^docs\//, ''), file, text })),
);
const tests = ['test', 'packages/browser-client/test']
  .flatMap((folder) =>
    readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  .filter((name) => name.endsWith('spec.ts'))
  .map(read)
  .join('\n');

const figures = pages.flatMap((page) =>
  [...read(`docs/${page}`).matchAll(/\[([\d.,]+)[^\]]*\]\((?:\.\.\/)?performance\.md#/g)].map(([, figure]) => ({
    page,
    figure: figure as string,
  })),
);

const records = readdirSync(join(PROJECT, 'docs/decisions')).filter((name) => /^\d{4}-/.test(name));

/** The Markdown pages of the project, of which those of a package or an example name its own tests. */
const allPages = ['docs', 'packages', 'examples']
  .flatMap((folder) =>
    readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  )
  .concat(readdirSync(PROJECT))
  .filter((path) => path.endsWith('.md') && !/(^|\/)(node_modules|dist)\//.test(path));
const TEST_PATH = /(?<![\w./*-])test\/[\w./-]*\w/g;
const namedTests = allPages.flatMap((page) =>
  Array.from(new Set(read(page).match(TEST_PATH)), (path) => ({ page, path })),
);

describe('the documentation', () => {
  it.each(namedTests)('$page names a test file or folder that exists: $path', ({ page, path }) => {
    expect(['', dirname(page)].some((folder) => existsSync(join(PROJECT, folder, path)))).toBe(true);
  });

  it.each(records)('has a decision record with at most 150 words, which the list names: %s', (name) => {
    expect(read(`docs/decisions/${name}`).split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(150);
    expect(read('docs/decisions/README.md')).toContain(`(${name})`);
  });

  it.each(figures)('$page cites the figure $figure of docs/performance.md', ({ figure }) => {
    expect(read('docs/performance.md')).toContain(figure);
  });

  it.each(quoted)('$page quotes $file verbatim', ({ file, text }) => {
    expect(read(file)).toContain(text);
  });

  it.each(quoted.filter(({ page }) => page.startsWith('integrating/') || page === 'llms.txt'))(
    '$page quotes the whole of $file, which a test runs',
    ({ file, text }) => {
      expect(text).toBe(read(file));
      expect(tests).toContain(file.slice('examples/integrating/'.length));
    },
  );

  it('shows the whole of a grant and of its test in the tutorial', () => {
    const whole = quoted.filter(({ page, file, text }) => page === 'adding-a-grant.md' && text === read(file));
    const paths = ['src/index.ts', 'test/boarding-pass.spec.ts'].map((path) => `examples/boarding-pass/${path}`);
    expect(whole.map(({ file }) => file)).toEqual(expect.arrayContaining(paths));
  });
});
