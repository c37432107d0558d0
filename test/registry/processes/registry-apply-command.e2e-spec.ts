import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { createEmptyDatabase, type TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { manage } from '../../support/management-api.js';
import { environmentOf, runCli } from '../../support/processes.js';
import { ACME } from '../../support/test-registry.js';
import { startTestService } from '../../support/test-service.js';

const OPERATOR = 'operator-token-of-the-tests-0123456789';

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

  it('with --merge adds entries as the admin API does, and leaves the file of the processes in force', async () => {
    const own = await createEmptyDatabase();
    const environment = { ...environmentOf(own), MIGRATE_ON_START: 'true' };
    const cli = (...parameters: string[]) => runCli(['registry', 'apply', ...parameters], environment);
    const write = (name: string, content: object) => {
      const path = join(own.folder, name);
      writeFileSync(path, stringify(content));
      return path;
    };
    const ofPods = write('pods.yaml', registry('Of the pods'));
    const site = (name: string) => ({
      client_id: 'site',
      name,
      client_type: 'web',
      redirect_uris: ['https://a.example/'],
    });
    const more = write('more.yaml', { clients: [{ ...site('Site'), organization_id: ACME }] });
    expect((await cli(ofPods)).code).toBe(0);
    expect(await cli('--merge', more)).toMatchObject({ code: 0, stdout: 'created: client site\n' });
    expect(await cli('--merge', more)).toMatchObject({ code: 0, stdout: 'unchanged: client site\n' });

    const service = await startTestService({
      database: own,
      environment: { REGISTRY_FILE: ofPods, ADMIN_TOKEN: OPERATOR },
    });
    expect((await manage(service, 'GET', '/metrics')).text).toMatch(/^cas_registry_file_superseded 0$/m);
    const { body } = await manage(service, 'GET', '/admin/clients', { authorization: `Bearer ${OPERATOR}` });
    expect(
      body.clients.map(({ client_id, owned_by_file }: Record<string, unknown>) => [client_id, owned_by_file]),
    ).toEqual([
      ['backend', true],
      ['site', false],
    ]);
    await service.stop();

    const taken = write('taken.yaml', registry('Taken'));
    const { code, stdout, stderr } = await cli('--merge', taken);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('client backend: belongs to the registry file; change it there');
    expect(await cli(ofPods)).toMatchObject({ code: 0, stdout: expect.stringContaining('unchanged: client backend') });
    await own.remove();
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
