import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { trim } from '../../scripts/trim-image.js';
import { temporaryFolder } from '../support/project-files.js';

const UNUSED = ['dist/main.js.map', 'dist/main.d.ts', 'node_modules/a/README.md', 'node_modules/a/index.d.mts'];
const USED = ['dist/main.js', 'dist/views/page.eta', 'node_modules/a/LICENSE.md', 'node_modules/a/package.json'];

const folder = temporaryFolder('trim');

it('the image gets no maps, declarations or Markdown, and has the licenses of its packages', () => {
  for (const path of [...UNUSED, ...USED]) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), '');
  }
  expect(trim(folder)).toBe(UNUSED.length);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  expect(files.map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1)).sort()).toEqual(USED);
});
