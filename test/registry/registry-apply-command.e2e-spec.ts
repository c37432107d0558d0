import { DataSource } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { metricOf } from '../support/management-api.js';
import { runCommand } from '../support/operator-commands.js';
import { writeFileOf } from '../support/registry-files.js';
import { ACME } from '../support/test-registry.js';
import { serviceOfTest } from '../support/use-service.js';

/** A registry with one client, which has this name. */
const registry = (name: string) => {
  const client_secret = 'the-secret-of-the-acme-backend-of-the-test';
  return {
    organizations: [{ id: ACME, name: 'Acme', public_clients: [] }],
    clients: [{ client_id: 'backend', name, client_type: 'server', organization_id: ACME, client_secret }],
  };
};

/** A service with a registry file, and its command `registry apply`. */
async function serviceWith(name: string) {
  const service = await serviceOfTest({ registry: registry(name) });
  const apply = (...parameters: string[]) => runCommand(service, 'registry', 'apply', ...parameters);
  const fileOf = (content: object) => writeFileOf(service, content);
  return { service, apply, fileOf, ofService: fileOf(registry(name)) };
}

describe('the command registry apply', () => {
  it('fails with a reason for a superseded file, and applies the file with --force', async () => {
    const { apply, fileOf, ofService: older } = await serviceWith('Older');
    const newer = fileOf(registry('Newer'));
    expect(await apply(newer)).toContain('changed: client backend');
    await expect(apply(older)).rejects.toThrow(
      /superseded and not applied: .*raise its top-level revision, or run: .*registry apply --force/,
    );
    expect(await apply('--force', older)).toContain('changed: client backend');
    expect(await apply(older)).toContain('unchanged: client backend');
    await expect(apply(newer)).rejects.toThrow('superseded');
    for (const wrong of [['--forced', older], ['--force']]) await expect(apply(...wrong)).rejects.toThrow();
    await expect(apply(`${older}.missing`)).rejects.toThrow('the file cannot be read');
  });

  it('with --merge adds entries as the admin API does, and leaves the file of the processes in force', async () => {
    const { service, apply, fileOf, ofService } = await serviceWith('Of the pods');
    const site = { client_id: 'site', name: 'Site', client_type: 'web', redirect_uris: ['https://a.example/'] };
    const more = fileOf({ clients: [{ ...site, organization_id: ACME }] });
    expect(await apply('--merge', more)).toBe('created: client site\n');
    expect(await apply('--merge', more)).toBe('unchanged: client site\n');
    expect(await apply(ofService), 'not superseded').toContain('unchanged: client backend');
    expect(await metricOf(service, 'cas_registry_file_superseded')).toBe(0);
    const { clients } = (await service.admin('GET', '/admin/clients')).body;
    const owned = clients.map((each: Record<string, unknown>) => [each.client_id, each.owned_by_file]);
    expect(owned).toEqual(Object.entries({ backend: true, site: false }));
    const taken = fileOf(registry('Taken'));
    const message = 'client backend: belongs to the registry file; change it there';
    await expect(apply('--merge', taken)).rejects.toThrow(message);
  });

  it('compares the file in force with the database only with --force', async () => {
    const { service, apply, ofService } = await serviceWith('Compared');
    await service.application.get(DataSource).query("UPDATE client_application SET name = 'By SQL'");
    expect(await apply(ofService)).toContain('unchanged: client backend');
    expect(await apply('--force', ofService)).toMatch(/^changed: client backend/m);
  });
});
