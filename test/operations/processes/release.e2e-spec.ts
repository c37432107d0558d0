import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from '../../support/processes.js';
import { PROJECT, read } from '../../support/project-files.js';

const REGISTRY = 'https://registry.invalid/';
/** The folders of the packages of packages/. */
const FOLDERS = readdirSync(join(PROJECT, 'packages')).map((name) => `packages/${name}`);

interface Manifest {
  name: string;
  main: string;
  types: string;
  license: string;
  private?: boolean;
  publishConfig?: object;
}
const manifestOf = (folder: string): Manifest => JSON.parse(read(`${folder}/package.json`));

/** The files of each package. */
let packed: Map<string, string[]>;
beforeAll(async () => {
  const parameters = ['pack', '--dry-run', '--json', '--silent', '--workspaces', '--include-workspace-root'];
  const { stdout } = await runProgram('npm', parameters, { cwd: PROJECT });
  const list: { name: string; files: { path: string }[] }[] = JSON.parse(stdout);
  packed = new Map(list.map(({ name, files }) => [name, files.map(({ path }) => path)]));
});
const filesOf = (folder: string) => packed.get(manifestOf(folder).name) ?? [];

describe('the packages of a release', () => {
  it.each(FOLDERS)('%s contains only built files, pages, the README and the license', (folder) => {
    const isBuilt = (path: string) => /^(dist|page|views)\//.test(path);
    const others = filesOf(folder).filter((path) => !isBuilt(path));
    expect(others.sort()).toEqual(['LICENSE', 'README.md', 'package.json']);
    const kinds = filesOf(folder).flatMap((path) => (isBuilt(path) ? (/(\.d)?\.\w+$/.exec(path)?.[0] ?? '') : []));
    expect(kinds.length).toBeGreaterThan(0);
    for (const kind of new Set(kinds)) expect(['.css', '.d.ts', '.eta', '.js', '.svg']).toContain(kind);
  });

  it.each(['.', ...FOLDERS])('%s has an entry point with types, and a license', (folder) => {
    const { main, types, license } = manifestOf(folder);
    const expected = [main, types].map((path) => path.replace('./', ''));
    expect(filesOf(folder)).toEqual(expect.arrayContaining([...expected, 'LICENSE']));
    expect(license).toBe('UNLICENSED');
    expect(read(`${folder}/LICENSE`)).toBe(read('LICENSE'));
  });

  it.each(['.', ...FOLDERS])('%s cannot be published until a company names its registry', (folder) => {
    expect(manifestOf(folder).publishConfig).toEqual({ registry: REGISTRY });
  });
});
