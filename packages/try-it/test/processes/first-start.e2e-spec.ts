import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { freePort } from '../../../../scripts/free-port.js';
import { START, startServiceProcess } from '../../../../test/support/processes.js';
import { request } from '../../../../test/support/test-service.js';

const PAGE_FILES = join(import.meta.dirname, '../../page');
const root = mkdtempSync(join(tmpdir(), 'try-it-process-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('protocol §11: a first npm start', () => {
  it('prints the URL of the page, and serves the page with all its files', async () => {
    const PORT = String(await freePort());
    const service = await startServiceProcess({ PORT, DATA_DIR: join(root, 'with') }, undefined, START);
    try {
      await service.process.says(new RegExp(`^Try the service in a browser: http://localhost:${PORT}/try$`, 'm'));
      expect((await request(`${service.url}/try`, {})).status).toBe(200);
      for (const name of [...readdirSync(PAGE_FILES).filter((each) => !each.endsWith('.d.ts')), 'qr.js']) {
        const { status, text } = await request(`${service.url}/try/files/${name}`, {});
        expect({ name, status, isEmpty: text === '' }).toEqual({ name, status: 200, isEmpty: false });
      }
    } finally {
      await service.terminate();
    }
  });

  it('prints at most twelve lines, and none for a migration, an entry of the demo registry or a file of the page', async () => {
    const service = await startServiceProcess({ DATA_DIR: join(root, 'lines') }, undefined, START);
    try {
      await service.process.says(/^# the same browser in a group/m);
      await request(`${service.url}/try`, {});
      await service.process.says(/support\/token .*\n/);
      const beforeRequests =
        service.process.stdout
          .split(/^.*request_id/m)[0]
          ?.trimEnd()
          .split('\n') ?? [];
      expect(beforeRequests.filter((line) => line !== '').length).toBeLessThanOrEqual(12);
      expect(service.process.stdout).not.toContain('"stream":"audit"');
    } finally {
      await service.terminate();
    }
  });

  it('with PORT=0 has free ports and prints them, and a later start on another port still has the page', async () => {
    const DATA_DIR = join(root, 'ports');
    const urls: string[] = [];
    for (const PORT of ['0', '0', String(await freePort())]) {
      const ports = PORT === '0' ? { PORT, MANAGEMENT_PORT: '' } : { PORT };
      const service = await startServiceProcess({ ...ports, DATA_DIR }, undefined, START);
      const url = `http://localhost:${new URL(service.url).port}`;
      try {
        await service.process.says(new RegExp(`^Try the service in a browser: ${url}/try$`, 'm'));
        expect((await request(`${service.url}/try`, {})).text).not.toContain('was made for another AUTH_URL');
        expect(service.managementUrl).not.toContain(':3001');
        urls.push(url);
      } finally {
        await service.terminate();
      }
    }
    const registry = readFileSync(join(DATA_DIR, 'demo-registry.yaml'), 'utf8');
    expect(urls.filter((url) => registry.includes(`${url}/try/signed-in`))).toEqual(urls.slice(-1));
  });

  it('prints the path of the registry file, in which a developer changes clients and origins', async () => {
    const service = await startServiceProcess({ DATA_DIR: join(root, 'registry') }, undefined, START);
    try {
      await expect.poll(() => service.process.stdout).toContain(join(root, 'registry', 'demo-registry.yaml'));
      expect(service.process.stdout).toContain('Clients, agents and passwords');
    } finally {
      await service.terminate();
    }
  });

  it('with TRY_IT=false has no try-it page and prints no URL of one', async () => {
    const service = await startServiceProcess({ TRY_IT: 'false', DATA_DIR: join(root, 'without') }, undefined, START);
    await service.process.says(/Clients, agents and passwords/);
    try {
      expect((await request(`${service.url}/try`, {})).status).toBe(404);
      expect(service.process.stdout).not.toContain('Try the service');
    } finally {
      await service.terminate();
    }
  });
});
