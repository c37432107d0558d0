import { createServer, type Server } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { listen } from '../../support/listen.js';
import { runProgram } from '../../support/processes.js';
import { PROJECT, read } from '../../support/project-files.js';

const VERSIONS: Record<string, string> = JSON.parse(read('package.json')).dependencies;
const ADVISORY = {
  id: 1,
  url: 'https://advisories.example/1',
  title: 'Signature is not checked',
  severity: 'high',
  vulnerable_versions: '<999.0.0',
  cwe: [],
  cvss: { score: 0 },
};

let registry: Server | undefined;
afterEach(() => void registry?.close());

/** Runs the command with a registry that has these advisories; `undefined`: the registry has no such service. */
async function check(advisories: Record<string, object[]> | undefined, settings: Record<string, string> = {}) {
  registry = createServer((request, response) => {
    request.resume();
    if (advisories === undefined) return void response.writeHead(405).end();
    // npm asks for the versions of a package with an advisory
    const [, name = ''] = request.url?.split('/') ?? [];
    const versions = { [VERSIONS[name] ?? '']: { name, version: VERSIONS[name] } };
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    response.end(gzipSync(JSON.stringify(request.method === 'GET' ? { name, versions } : advisories)));
  });
  const env = { ...process.env, npm_config_registry: `${await listen(registry)}/`, ...settings };
  return runProgram(process.execPath, [`${PROJECT}/scripts/check-advisories.js`], { env });
}

describe('npm run check:advisories', () => {
  it('exits with 1 and names a package with an advisory', async () => {
    const { code, stderr } = await check({ jose: [ADVISORY] });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^jose \S+: high: Signature is not checked https:\/\/advisories\.example\/1$/m);
  });

  it('exits with 0 and prints no violation if there is no advisory', async () => {
    expect(await check({})).toMatchObject({ code: 0, stderr: '' });
  });

  it('exits with 2 and says that nothing was checked if the registry has no advisories service', async () => {
    const { code, stderr } = await check(undefined);
    expect(code).toBe(2);
    expect(stderr).toContain('advisories were not checked: the registry did not respond as expected (405');
  });

  it('exits with 2 and says that nothing was checked if there is no network', async () => {
    const { code, stdout, stderr } = await check({}, { npm_config_registry: 'http://127.0.0.1:1/' });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('advisories were not checked: the registry did not respond as expected (');
  });

  it.each([
    ['is offline', { npm_config_offline: 'true' }],
    ['makes no audits', { npm_config_audit: 'false' }],
  ])('asks the registry even if npm %s by its configuration', async (_, settings) => {
    const { code, stderr } = await check({ jose: [ADVISORY] }, settings);
    expect(code).toBe(1);
    expect(stderr).toContain('Signature is not checked');
  });
});
