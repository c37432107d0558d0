import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROJECT, read } from '../support/project-files.js';

interface ImportRules {
  forbidden: { name: string; from: { path?: string } }[];
}

const page = read('docs/architecture.md');
const { forbidden }: ImportRules = createRequire(import.meta.url)(join(PROJECT, '.dependency-cruiser.cjs'));

/** Tables that only SQL uses. */
const TABLES_WITHOUT_ENTITY = ['lease'];

/** The names in back quotes of each row of the table of levels. */
const levelsOfPage = [...page.matchAll(/^\| \d+ \| (.*) \|$/gm)].map(([, names = '']) => namesIn(names));
/** Every level except the highest has a rule that its imports point down. */
const levelsOfChecker = forbidden
  .filter(({ name }) => /^level-\d+-points-down$/.test(name))
  .map(({ from: { path = '' } }) => (/\((.*)\)\(/.exec(path)?.[1] ?? '').replaceAll('\\', '').split('|'));

function namesIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
}

describe('docs/architecture.md', () => {
  it('lists the levels that the import checker enforces', () => {
    expect(levelsOfPage.slice(0, -1)).toEqual(levelsOfChecker);
  });

  it('lists every folder of src on a level and in the table of folders', () => {
    const folders = readdirSync(join(PROJECT, 'src'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && entry.name !== 'public')
      .map(({ name }) => name);
    const named = levelsOfPage.flat().map((name) => name.split('/')[0]);
    expect(folders.filter((name) => !named.includes(name))).toEqual([]);
    expect(folders.filter((name) => !page.includes(`\n| \`${name}/\` |`))).toEqual([]);
  });

  it('lists and draws every table of the service, and no other', () => {
    const entities = readdirSync(join(PROJECT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) => [...read(join('src', name)).matchAll(/^@Entity\('(\w+)'\)/gm)])
      .map(([, table = '']) => table);
    const tables = [...entities, ...TABLES_WITHOUT_ENTITY].sort();
    const section = /^## Tables\n[\s\S]*?(?=\n## )/m.exec(page)?.[0] ?? '';
    const listed = [...section.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, names = '']) => namesIn(names));
    const diagram = /^erDiagram\n([\s\S]*?)^```$/m.exec(section)?.[1] ?? '';
    const drawn = [...diagram.matchAll(/^ {2}(\w+)(?: \S+--\S+ (\w+) :.*)?$/gm)].flatMap(
      ([, one = '', other = one]) => [one, other],
    );
    expect(tables.length).toBeGreaterThan(15);
    expect(listed.sort()).toEqual(tables);
    expect([...new Set(drawn)].sort()).toEqual(tables);
  });

  it('names only files that exist in its walk through a token request', () => {
    const walk = /## One token request[\s\S]*?(?=\n## )/.exec(page)?.[0] ?? '';
    const files = namesIn(walk.replace(/^```[\s\S]*?^```$/gm, '')).filter((name) => /\.ts$/.test(name));
    let folder = '';
    const missing = files.filter((name) => {
      if (name.includes('/')) folder = name.slice(0, name.lastIndexOf('/') + 1);
      return !existsSync(join(PROJECT, 'src', name.includes('/') ? name : folder + name));
    });
    expect(files.length).toBeGreaterThan(10);
    expect(missing).toEqual([]);
  });
});
