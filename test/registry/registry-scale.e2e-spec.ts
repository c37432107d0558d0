import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { applyRegistry } from '../support/registry-files.js';
import { ACME } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const SLOW = { timeout: 300_000 };
const CLIENT_COUNT = 1_500;

function registryOf(name: string, more: object = {}): string {
  const organizations = [{ id: ACME, name: 'Acme', public_clients: [] }];
  const clients = Array.from({ length: CLIENT_COUNT }, (_, index) => ({
    client_id: `client-${index}`,
    name,
    client_type: 'web',
    organization_id: ACME,
    redirect_uris: [`https://client-${index}.example/`],
  }));
  Object.assign(clients[700] as object, more);
  return stringify({ organizations, clients });
}

describe('a registry file of 1,500 clients', SLOW, () => {
  const service = useService();
  /** How many entries the file created, changed and left unchanged. */
  const apply = async (text: string) => {
    const applied = await applyRegistry(service, text);
    const countOf = (outcome: string) => applied.filter((entry) => entry.outcome === outcome).length;
    return [countOf('created'), countOf('changed'), countOf('unchanged')];
  };

  it('creates the entries, leaves them unchanged the second time, and changes only what changed', async () => {
    expect(await apply(registryOf('First'))).toEqual([CLIENT_COUNT, 1, 0]);
    expect(await apply(registryOf('First'))).toEqual([0, 0, CLIENT_COUNT + 1]);
    expect(await apply(registryOf('First', { redirect_uri_match: 'prefix' }))).toEqual([0, 1, CLIENT_COUNT]);
    expect(await apply(registryOf('Second', { redirect_uri_match: 'prefix' }))).toEqual([0, CLIENT_COUNT, 1]);
  });

  it('is written with few statements if each client changes', async () => {
    await apply(registryOf('First'));
    const log = vi.spyOn(service.application.get(DataSource).logger, 'logQuery');
    await apply(registryOf('Third'));
    const writes = log.mock.calls.filter(([sql]) => /^(INSERT INTO|UPDATE) .client_application/.test(sql));
    log.mockRestore();
    expect(writes.length).toBeGreaterThan(0);
    expect(writes.length).toBeLessThanOrEqual(CLIENT_COUNT / 40 + 1);
  });

  it('is rejected with the path or the line of a violation', async () => {
    const violationsOf = (text: string) => apply(text).catch(({ violations }) => violations);
    expect(await violationsOf(registryOf('X', { client_type: 'unknown' }))).toEqual([
      expect.stringMatching(/^clients\[700\]\.client_type: /),
    ]);
    const cut = `clients:\n${'  - { client_id: a }\n'.repeat(5_000)}  - {\n`;
    expect(await violationsOf(cut)).toEqual([expect.stringMatching(/line 500\d: /)]);
  });
});
