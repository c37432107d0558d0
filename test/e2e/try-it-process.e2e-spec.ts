import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { freePort } from '../../scripts/free-port.js';
import { startServiceProcess } from '../support/processes.js';
import { request } from '../support/test-service.js';

const PAGE_FILES = join(import.meta.dirname, '../../src/try-it/page');
const root = mkdtempSync(join(tmpdir(), 'try-it-process-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('protocol §11: a first start of the built service', () => {
  it('with TRY_IT prints the URL of the page first, and serves the page with all its files', async () => {
    const PORT = String(await freePort());
    const service = await startServiceProcess({ TRY_IT: 'true', PORT, DATA_DIR: join(root, 'with') });
    try {
      const [firstLine] = service.process.stdout.trimStart().split('\n');
      expect(firstLine).toBe(`Try the service in a browser: http://localhost:${PORT}/try`);
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
    const service = await startServiceProcess({ DATA_DIR: join(root, 'registry') });
    try {
      await expect.poll(() => service.process.stdout).toContain(join(root, 'registry', 'demo-registry.yaml'));
      expect(service.process.stdout).toContain('Clients, their origins');
    } finally {
      await service.terminate();
    }
  });

  it('without TRY_IT has no try-it page and prints no URL of one', async () => {
    const service = await startServiceProcess({ DATA_DIR: join(root, 'without') });
    try {
      expect((await request(`${service.url}/try`, {})).status).toBe(404);
      expect(service.process.stdout).not.toContain('Try the service');
    } finally {
      await service.terminate();
    }
  });
});
