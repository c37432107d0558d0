import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createEmptyDatabase, type TestDatabase } from '../../src/testing/test-database.js';
import { environmentOf, runCli } from '../support/processes.js';
import { ACME } from '../support/test-registry.js';
import { startTestService } from '../support/test-service.js';

/** A registry with one client, which has this name. */
const registry = (name: string, more: object = {}) => ({
  organizations: [{ id: ACME, name: 'Acme', public_clients: [] }],
  clients: [
    {
      client_id: 'backend',
      name,
      client_type: 'server',
      organization_id: ACME,
      client_secret: 'the-secret-of-the-acme-backend-of-the-test',
    },
  ],
  ...more,
});

describe('the command registry apply', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createEmptyDatabase();
  });
  afterAll(() => database?.remove());

  it('exits with 1 and a reason for a superseded file, and applies the file with --force', async () => {
    const environment = { ...environmentOf(database), MIGRATE_ON_START: 'true' };
    const cli = (...parameters: string[]) => runCli(['registry', 'apply', ...parameters], environment);
    const fileOf = (name: string) => {
      const path = join(database.folder, `${name}.yaml`);
      writeFileSync(path, stringify(registry(name)));
      return path;
    };
    const [older, newer] = [fileOf('Older'), fileOf('Newer')];
    expect((await runCli(['migrate'], environment)).code).toBe(0);
    for (const path of [older, newer]) expect((await cli(path)).code).toBe(0);
    const { code, stdout, stderr } = await cli(older);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(
      /superseded and not applied: .*raise its top-level revision, or run: .*registry apply --force/,
    );
    expect(await cli('--force', older)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('changed: client backend'),
    });
    expect((await cli(older)).code).toBe(0);
    expect((await cli(newer)).code).toBe(1);
    expect((await Promise.all([cli('--forced', older), cli('--force')])).map((ended) => ended.code)).toEqual([2, 2]);
  });

  it('compares the file in force with the database only with --force', async () => {
    const path = join(database.folder, 'compared.yaml');
    writeFileSync(path, stringify(registry('Compared', { revision: 1 })));
    const cli = (...parameters: string[]) =>
      runCli(['registry', 'apply', ...parameters, path], environmentOf(database));
    const service = await startTestService({ database, environment: { REGISTRY_FILE: path } });
    await service.application.get(DataSource).query("UPDATE client_application SET name = 'By SQL'");
    await service.stop();
    expect((await cli()).stdout).toContain('unchanged: client backend');
    expect((await cli('--force')).stdout).toMatch(/^changed: client backend/m);
  });
});
