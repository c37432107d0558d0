import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { PROJECT, read, temporaryFolder } from '../../support/project-files.js';

const page = read('docs/adding-a-grant.md');
describe('the packages that the generator copies', () => {
  const templates = ['agent-link', 'boarding-pass', 'phone-code'].map((name) => `examples/${name}`);
  const filesIn = (folder: string) =>
    execFileSync('git', ['ls-files', folder], { cwd: PROJECT, encoding: 'utf8' }).trim().split('\n');
  const linesOf = (path: string) => read(path).trimEnd().split('\n').length;

  it('have a grant of one class in a file of at most 40 lines, and its test in 30', () => {
    expect(linesOf('examples/boarding-pass/src/index.ts')).toBeLessThanOrEqual(40);
    expect(linesOf('examples/boarding-pass/test/boarding-pass.spec.ts')).toBeLessThanOrEqual(30);
  });

  it('have at most 1,000 lines', () => {
    const files = [...templates, 'scripts/new-package'].flatMap(filesIn);
    expect(files.length).toBeGreaterThan(30);
    expect(files.map(linesOf).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(1_000);
  });

  it('import at most 20 names of the service', () => {
    const sources = templates.flatMap((folder) => filesIn(`${folder}/src`)).map(read);
    const imported = sources.flatMap((text) =>
      Array.from(
        text.matchAll(/import (?:type )?\{([^}]*)\} from '@customer-authorization\/service\/grant'/g),
        ([, names = '']) => names.split(',').map((name) => name.replace('type', '').trim()),
      ).flat(),
    );
    const names = new Set(imported.filter((name) => name !== ''));
    expect(names.size).toBeGreaterThan(10);
    expect([...names].length).toBeLessThanOrEqual(20);
  });
});

describe('the tutorial (docs/adding-a-grant.md)', () => {
  const folder = temporaryFolder('generated');

  it('names only scripts that exist', () => {
    const { scripts } = JSON.parse(read('examples/boarding-pass/package.json'));
    const named = Array.from(page.matchAll(/npm run (?:-s )?([\w:-]+)/g), ([, name = '']) => name);
    expect(named.length).toBeGreaterThan(0);
    for (const name of named) expect(Object.keys(scripts)).toContain(name);
  });

  it('shows a program of the package, which writes a package whose README has a request that its registry allows', () => {
    expect(page).toContain('npx @customer-authorization/service new-package "boarding pass"');
    const { bin } = JSON.parse(read('package.json'));
    execFileSync(join(PROJECT, bin['customer-authorization-service']), ['new-package', 'boarding pass'], {
      cwd: folder,
    });
    const generated = (path: string) => readFileSync(join(folder, 'boarding-pass', path), 'utf8');
    const [, requestBody = ''] = /-d '(\{.*\})'/.exec(generated('README.md')) ?? [];
    const { clients, organizations } = parse(generated('registry.yaml'));
    const { grant_type, client_id, organization_id } = JSON.parse(requestBody);
    expect(clients[0]).toMatchObject({ client_id, organization_id });
    expect(organizations[0]).toMatchObject({ id: organization_id, grants: { [grant_type]: expect.anything() } });
  });
});
