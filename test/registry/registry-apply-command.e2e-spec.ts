import { DataSource } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { runCommand, runCommandWithInput } from '../support/operator-commands.js';
import { writeFileOf } from '../support/registry-files.js';
import { ACME, RIVAL } from '../support/test-registry.js';
import { serviceOfTest } from '../support/use-service.js';

/** A registry with one client, which has this name. */
const registry = (name: string) => {
  const client_secret = 'the-secret-of-the-acme-backend-of-the-test';
  return {
    organizations: [{ id: ACME, name: 'Acme', public_clients: [] }],
    clients: [{ client_id: 'backend', name, client_type: 'server', organization_id: ACME, client_secret }],
  };
};

/** A service with a registry file, and its command `registry`. */
async function serviceWith(name: string) {
  const service = await serviceOfTest({ registry: registry(name) });
  const run = (...parameters: string[]) => runCommandWithInput(service, '', 'registry', ...parameters);
  const fileOf = (content: object | string) => writeFileOf(service, content);
  const sql = (text: string) => service.application.get(DataSource).query(text);
  return { service, run, fileOf, sql };
}

describe('the command registry apply', () => {
  it('compares each entry with the database, and writes what differs', async () => {
    const { service, fileOf, sql } = await serviceWith('Compared');
    const apply = (content: object) => runCommand(service, 'registry', 'apply', fileOf(content));
    expect(await apply(registry('Compared'))).toContain('unchanged: client backend');
    await sql("UPDATE client_application SET name = 'By SQL'");
    expect(await apply(registry('Compared'))).toMatch(/^changed: client backend/m);
    expect(await apply(registry('Older'))).toContain('changed: client backend');
    expect(await apply(registry('Compared'))).toContain('changed: client backend');
  });

  it('with --dry-run prints only what would change, ends with 2 if something would, and writes nothing', async () => {
    const { run, fileOf, sql } = await serviceWith('Present');
    const state = async () =>
      JSON.stringify([await sql('SELECT * FROM client_application'), await sql('SELECT * FROM registry_revision')]);
    const before = await state();
    const added = { client_id: 'added', name: 'Added', client_type: 'web' };
    const changed = { ...registry('Changed'), clients: [...registry('Changed').clients, added] };
    const dryRun = await run('apply', '--dry-run', fileOf(changed));
    expect(dryRun).toMatchObject({ code: 2, output: 'changed: client backend\ncreated: client added\n' });
    expect(await run('apply', '--dry-run', fileOf(registry('Present')))).toMatchObject({ code: 0, output: '' });
    expect(await state()).toBe(before);
  });

  it('with --prune removes the entries of an earlier file only, and with --dry-run too only prints them', async () => {
    const { service, run, fileOf, sql } = await serviceWith('Pruned');
    const byOperator = { client_id: 'by-operator', name: 'By operator', client_type: 'web' };
    expect((await service.admin('POST', '/admin/clients', byOperator)).status).toBe(201);
    const rows = async () => [
      await sql('SELECT id, suspended FROM organization'),
      await sql('SELECT client_id FROM client_application WHERE deleted_at IS NULL ORDER BY client_id'),
      await sql('SELECT revision FROM registry_revision'),
    ];
    const before = await rows();
    const output = `deleted: client backend\nsuspended: organization ${ACME}\n`;
    const sorted = (text: string) => text.split('\n').sort();
    const dryRun = await run('apply', '--prune', '--dry-run', fileOf('clients:\n'));
    expect([dryRun.code, sorted(dryRun.output)]).toEqual([2, sorted(output)]);
    expect(await run('apply', '--dry-run', fileOf('clients:\n'))).toMatchObject({ code: 0, output: '' });
    expect(await rows()).toEqual(before);
    const pruned = await run('apply', '--prune', fileOf('clients:\n'));
    expect([pruned.code, sorted(pruned.output)]).toEqual([0, sorted(output)]);
    const [organizations, clients] = await rows();
    expect({ organizations, clients }).toEqual({
      organizations: [{ id: ACME, suspended: 1 }],
      clients: [{ client_id: 'by-operator' }],
    });
  });

  it('fails for an unknown option, for no file and for a file that cannot be read', async () => {
    const { run, fileOf } = await serviceWith('Options');
    const file = fileOf(registry('Options'));
    for (const wrong of [['--force', file], ['--dry-run'], [file, file], []])
      await expect(run('apply', ...wrong)).rejects.toThrow();
    await expect(run('apply', `${file}.missing`)).rejects.toThrow('the file cannot be read');
  });
});

describe('the command registry check', () => {
  it('names all violations', async () => {
    const { run, fileOf } = await serviceWith('Checked');
    const [client] = registry('Checked').clients;
    const invalid = {
      organizations: [{ id: ACME, name: 'Acme', surprise: 1 }],
      clients: [
        { ...client, client_type: 'unknown' },
        { ...client, grant_types: ['nope'] },
      ],
    };
    const error = await run('check', fileOf(invalid)).catch((thrown) => thrown);
    const paths = error.violations.map((violation: string) => violation.split(': ')[0]);
    expect(paths.sort()).toEqual([
      ...['clients[0].client_type', 'clients[1].client_id', 'clients[1].grant_types[0]', 'organizations[0].surprise'],
    ]);
  });

  it('accepts a file that needs stored entries or secret files of another machine, and names them', async () => {
    const { run, fileOf } = await serviceWith('Checked');
    const [client] = registry('Checked').clients;
    const agent = { email: 'new@acme.example', name: 'New', organization_id: RIVAL };
    const clients = [{ ...client, client_secret: undefined, client_secret_file: '/run/secrets/registry/backend' }];
    const { code, output, messages } = await run('check', fileOf({ ...registry('Checked'), clients, agents: [agent] }));
    expect({ code, output }).toEqual({ code: 0, output: 'the registry file is valid\n' });
    const needed = messages
      .trim()
      .split('\n')
      .map((line) => line.replace('to be applied, the file needs more: ', ''));
    expect(needed).toEqual([
      'clients[0].client_secret_file: the file cannot be read here',
      'agents[0].organization_id: not a registered organization',
    ]);
  });
});
