import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { freePort } from '../../../scripts/free-port.js';
import { START, startServiceProcess } from '../../../test/support/processes.js';
import { request } from '../../../test/support/test-service.js';

const PAGE_FILES = join(import.meta.dirname, '../page');
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

  it('prints the path of the registry file, in which a developer changes clients and origins', async () => {
    const service = await startServiceProcess({ DATA_DIR: join(root, 'registry') }, undefined, START);
    try {
      await expect.poll(() => service.process.stdout).toContain(join(root, 'registry', 'demo-registry.yaml'));
      expect(service.process.stdout).toContain('Clients, their origins');
    } finally {
      await service.terminate();
    }
  });

  it('with TRY_IT=false has no try-it page and prints no URL of one', async () => {
    const service = await startServiceProcess({ TRY_IT: 'false', DATA_DIR: join(root, 'without') }, undefined, START);
    await service.process.says(/Clients, their origins/);
    try {
      expect((await request(`${service.url}/try`, {})).status).toBe(404);
      expect(service.process.stdout).not.toContain('Try the service');
    } finally {
      await service.terminate();
    }
  });
});
