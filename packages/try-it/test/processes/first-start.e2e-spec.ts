import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../../../../scripts/free-port.js';
import { TOKEN } from '../../../../test/support/cookie-grant.js';
import {
  PORTS,
  PRODUCTION,
  type ServiceProcess,
  START,
  startServiceProcess,
  TestProcess,
} from '../../../../test/support/processes.js';
import { temporaryFolder } from '../../../../test/support/project-files.js';
import { writeRegistry } from '../../../../test/support/test-registry.js';
import { request } from '../../../../test/support/test-service.js';
import { DEMO } from '../../src/demo-registry.js';

const root = temporaryFolder('try-it-process');
const NODE_ENV_FILE = join(root, 'node-env');
writeFileSync(NODE_ENV_FILE, 'production\n');
const PAGE_FILES = join(import.meta.dirname, '../../page');

/** Starts a program in a folder, by default in a new one. It ends with the test. */
async function start(
  main: typeof START | 'main.js',
  environment: NodeJS.ProcessEnv = {},
  folder = mkdtempSync(join(root, 'folder-')),
): Promise<ServiceProcess & { folder: string }> {
  const service = await startServiceProcess({ DATA_DIR: folder, ...environment }, folder, main);
  onTestFinished(() => void service.process.signal('SIGKILL'));
  return { ...service, folder };
}

const statusOf = async ({ url }: ServiceProcess, path: string) => (await request(url + path, {})).status;

describe('protocol §11: a first npm start', () => {
  it('prints the URL of the page and the path of the registry file in at most twelve lines, and serves all files', async () => {
    const PORT = String(await freePort());
    const service = await start(START, { PORT });
    await service.process.says(new RegExp(`^Try the service in a browser: http://localhost:${PORT}/try$`, 'm'));
    await service.process.says(/^# the same browser in a group/m);
    await service.process.says(/support\/token .*\n/);
    const lines = service.process.stdout.split('\n').filter((line) => line !== '');
    expect(lines.length).toBeLessThanOrEqual(12);
    expect(service.process.stdout).toContain('Clients, agents and passwords');
    expect(service.process.stdout).toContain(join(service.folder, 'demo-registry.yaml'));
    expect(service.process.stdout).not.toContain('"stream":"audit"');
    expect(await statusOf(service, '/try')).toBe(200);
    for (const name of [...readdirSync(PAGE_FILES).filter((each) => !each.endsWith('.d.ts')), 'qr.js']) {
      const { status, text } = await request(`${service.url}/try/files/${name}`, {});
      expect({ name, status, isEmpty: text === '' }).toEqual({ name, status: 200, isEmpty: false });
    }
  });

  it('with PORT=0 has free ports and prints them, and the page works after each change of the port', async () => {
    const DATA_DIR = join(root, 'ports');
    const urls: string[] = [];
    const fixed = String(await freePort());
    for (const PORT of ['0', fixed, '0', fixed]) {
      const service = await start(START, { ...(PORT === '0' ? { PORT, MANAGEMENT_PORT: '' } : { PORT }), DATA_DIR });
      const url = `http://localhost:${new URL(service.url).port}`;
      await service.process.says(new RegExp(`^Try the service in a browser: ${url}/try$`, 'm'));
      expect(await statusOf(service, '/try')).toBe(200);
      const visit = { client_id: DEMO.clientId, grant_type: 'cookie', organization_id: DEMO.organizationId };
      const body = JSON.stringify({ response_type: 'token', ...visit });
      const headers = { origin: url, 'content-type': 'application/json' };
      expect((await request(`${service.url}${TOKEN}`, { method: 'POST', headers, body })).status).toBe(200);
      expect(service.managementUrl).not.toContain(':3001');
      urls.push(url);
      await service.terminate();
    }
    const registry = readFileSync(join(DATA_DIR, 'demo-registry.yaml'), 'utf8');
    expect(urls.filter((url) => registry.includes(`${url}/try/signed-in`))).toEqual([urls[1], urls[3]]);
  });

  it('ends with one sentence if another one uses its folder at another URL, and the page of that one works on', async () => {
    const first = await start(START, { PORT: '0', MANAGEMENT_PORT: '' });
    const second = await TestProcess.start(START, [], { ...PORTS, DATA_DIR: first.folder }).ended;
    const { pid } = first.process;
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(new RegExp(`^Process ${pid} uses the demo registry .+ stop it, .+\\.\n$`));
    expect(await statusOf(first, '/try')).toBe(200);
  });

  it('leads from the root to the page, but not from a request for authorization', async () => {
    const { url } = await start(START, { PORT: '0', MANAGEMENT_PORT: '' });
    const get = (path: string) => fetch(url + path, { redirect: 'manual' });
    const root = await get('/');
    expect([root.status, root.headers.get('location')]).toEqual([302, '/try']);
    expect((await get('/?client_id=unknown')).status).toBe(400);
  });

  it('with TRY_IT=false in .env has no pages that try the service, and prints no URL of one', async () => {
    const folder = mkdtempSync(join(root, 'folder-'));
    writeFileSync(join(folder, '.env'), 'TRY_IT=false');
    const service = await start(START, {}, folder);
    await service.process.says(/Clients, agents and passwords/);
    expect(await statusOf(service, '/try')).toBe(404);
    expect(service.process.stdout).not.toContain('Try the service');
  });

  it('ends before it creates a demo registry if NODE_ENV is not known', async () => {
    const environment = { ...PORTS, DATA_DIR: mkdtempSync(join(root, 'folder-')), NODE_ENV: 'Production' };
    const { code, stderr } = await TestProcess.start(START, [], environment).ended;
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^ +NODE_ENV: must be one of/m) });
    expect(readdirSync(environment.DATA_DIR)).toEqual([]);
  });

  it.each([
    ['in production, if NODE_ENV has a space', { ...PRODUCTION, NODE_ENV: 'production ' }, 404],
    ['in production, if NODE_ENV is in a file', { ...PRODUCTION, NODE_ENV: '', NODE_ENV_FILE }, 404],
    ['with a registry file', { REGISTRY_FILE: writeRegistry(join(root, 'registry.yaml')) }, 200],
  ])('creates no demo registry %s', async (_case, environment, statusOfFile) => {
    const service = await start(START, environment);
    expect(await statusOf(service, '/try/files/qr.js')).toBe(statusOfFile);
    expect(await service.terminate()).toBe(0);
    expect(existsSync(join(service.folder, 'service.sqlite'))).toBe(true);
    expect(existsSync(join(service.folder, 'demo-registry.yaml'))).toBe(false);
    expect(service.process.stdout).not.toContain('demo-registry.yaml');
  });
});
