import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { START, startServiceProcess } from '../../../../test/support/processes.js';
import { writeRegistry } from '../../../../test/support/test-registry.js';
import { request } from '../../../../test/support/test-service.js';

const root = mkdtempSync(join(tmpdir(), 'npm-start-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** The status of the OpenAPI page on the public port of a new service. */
async function statusOfPage(main: typeof START | 'main.js', environment: NodeJS.ProcessEnv, dotEnv = '') {
  const folder = mkdtempSync(join(root, 'folder-'));
  writeFileSync(join(folder, '.env'), dotEnv);
  const service = await startServiceProcess({ DATA_DIR: join(folder, 'var'), ...environment }, folder, main);
  try {
    return (await request(`${service.url}/docs`, {})).status;
  } finally {
    await service.terminate();
  }
}

describe('protocol §11: pages that try the service', () => {
  const PRODUCTION = { NODE_ENV: 'production', AUTH_URL: 'https://auth.example' };

  it('exist under npm start', async () => {
    expect(await statusOfPage(START, {})).toBe(200);
  });

  it.each([
    ['with TRY_IT=false in .env', {}, 'TRY_IT=false'],
    ['in production', PRODUCTION, ''],
  ])('do not exist under npm start %s', async (_case, environment, dotEnv) => {
    expect(await statusOfPage(START, environment, dotEnv)).toBe(404);
  });

  it('exist in the server only with TRY_IT', async () => {
    expect(await statusOfPage('main.js', {})).toBe(404);
    expect(await statusOfPage('main.js', { TRY_IT: 'true' })).toBe(200);
  });

  it.each([
    ['in production', PRODUCTION],
    ['with a registry file', { REGISTRY_FILE: writeRegistry(join(root, 'registry.yaml')) }],
  ])('npm start creates no demo registry %s', async (_case, environment) => {
    const folder = mkdtempSync(join(root, 'folder-'));
    const service = await startServiceProcess({ DATA_DIR: folder, ...environment }, folder, START);
    expect(await service.terminate()).toBe(0);
    expect(existsSync(join(folder, 'service.sqlite'))).toBe(true);
    expect(existsSync(join(folder, 'demo-registry.yaml'))).toBe(false);
    expect(service.process.stdout).not.toContain('demo-registry.yaml');
  });
});
