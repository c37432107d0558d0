import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import { type TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { Database } from '../../../src/platform/database/database.js';
import { sha256 } from '../../../src/platform/secret.js';
import { AppliedRegistryFile } from '../../../src/registry/applied-registry-file.entity.js';
import { SupersededRegistryFileError } from '../../../src/registry/file/applied-files.js';
import { RegistryTransactions } from '../../../src/registry/registry-transactions.js';
import { askToken } from '../../support/agent-tokens.js';
import { metricOf } from '../../support/management-api.js';
import { registryFileOf, writeFileOf } from '../../support/registry-files.js';
import { ACME } from '../../support/test-registry.js';
import { startTestService, type TestService } from '../../support/test-service.js';
import { FILE_CHECK_PAUSE_MS, shortenPauses } from '../../support/timers.js';

const OLD_SECRET = 'the-old-secret-of-the-acme-backend';
const NEW_SECRET = 'the-new-secret-of-the-acme-backend';

/** A registry with one client, which has this name and secret. */
const registry = (name: string, client_secret = OLD_SECRET, more: object = {}) => ({
  organizations: [{ id: ACME, name: 'Acme', public_clients: [] }],
  clients: [{ client_id: 'backend', name, client_type: 'server', organization_id: ACME, client_secret }],
  ...more,
});

/** Runs the work of another process right before the next transaction on the registry of a process. */
function beforeNextTransaction({ application }: TestService, work: () => Promise<unknown>): void {
  const transactions = application.get(RegistryTransactions, { strict: false });
  const run = transactions.run.bind(transactions);
  vi.spyOn(transactions, 'run').mockImplementationOnce(async (...parameters) => {
    await work();
    return run(...parameters);
  });
}

describe('a superseded registry file', () => {
  let database: TestDatabase;
  let output: OutputCapture;
  const running: TestService[] = [];
  beforeEach(async () => {
    database = await createTestDatabase();
    output = new OutputCapture();
  });
  afterEach(async () => {
    for (const service of running.splice(0)) await service.stop();
    await database.remove();
  });

  const fileOf = (content: object | string, name?: string) => writeFileOf({ database }, content, name);
  /** A file with a client whose secret is in another file. */
  const withFile = (name: string) => {
    const { clients, ...rest } = registry(name);
    const [client] = clients.map(({ client_secret: _, ...each }) => ({ ...each, client_secret_file: 'secret.txt' }));
    return fileOf({ ...rest, clients: [client] });
  };
  /** Starts a process with this registry file. */
  const start = async (REGISTRY_FILE: string) => {
    const service = await startTestService({ database, log: output.log, environment: { REGISTRY_FILE } });
    running.push(service);
    return service;
  };
  const stop = async (service: TestService) => running.splice(running.indexOf(service), 1)[0]?.stop();
  const restart = async (path: string) => {
    const service = await start(path);
    const state = await stateOf(service);
    await stop(service);
    return state;
  };
  const clientIn = async ({ application }: TestService) =>
    (await application.get(DataSource).query("SELECT * FROM client_application WHERE client_id = 'backend'"))[0];
  const nameIn = async (service: TestService) => (await clientIn(service)).name;
  const gaugeOf = (service: TestService) => metricOf(service, 'cas_registry_file_superseded');
  const stateOf = async (service: TestService) => [await nameIn(service), await gaugeOf(service)];
  const warnings = () => output.lines.filter((line) => line.includes('superseded'));

  it('is not applied at a start: one log line and a gauge report it, and the registry stays unchanged', async () => {
    const [older, newer] = [fileOf(registry('Older')), fileOf(registry('Newer', NEW_SECRET))];
    expect(await restart(older)).toEqual(['Older', 0]);
    expect(await restart(newer)).toEqual(['Newer', 0]);
    expect(warnings()).toEqual([]);
    const service = await start(older);
    expect(await stateOf(service)).toEqual(['Newer', 1]);
    expect(warnings()).toEqual([expect.stringContaining('REGISTRY_FILE: the registry file is superseded')]);
    expect(warnings()[0]).toMatch(
      /applied at \d{4}-\d\d-\d\dT.*raise its top-level revision.*registry apply --force FILE/,
    );
    const ask = async (client_secret: string) => {
      const request = { client_id: 'backend', client_secret, grant_type: 'refresh_token', refresh_token: 'unknown' };
      return (await askToken(service, request)).status;
    };
    expect(await Promise.all([OLD_SECRET, NEW_SECRET].map(ask))).toEqual([401, 400]);
    expect(await restart(newer)).toEqual(['Newer', 0]);
  });

  it('does not stop a process from starting if it has become invalid', async () => {
    const secret_file = fileOf(NEW_SECRET, 'api.txt');
    const older = fileOf({ ...registry('Older'), resource_servers: [{ id: 'api', audiences: [], secret_file }] });
    await restart(older);
    const service = await start(fileOf(registry('Newer')));
    await service.application.get(DataSource).query("DELETE FROM resource_server WHERE id = 'api'");
    writeFileSync(secret_file, 'short');
    expect(await restart(older)).toEqual(['Newer', 1]);
  });

  it('is not applied with changed secret files, while the newest file is applied with new secrets only', async () => {
    const [older, newer] = [withFile('Older'), withFile('Newer')];
    const write = (secret: string) => fileOf(secret, 'secret.txt');
    const storedSecret = async (service: TestService) => (await clientIn(service)).secret_hash;
    write(OLD_SECRET);
    await restart(older);
    await restart(newer);
    write(NEW_SECRET);
    expect(await restart(older)).toEqual(['Newer', 1]);
    const service = await start(newer);
    expect([await storedSecret(service), await gaugeOf(service)]).toEqual([sha256(NEW_SECRET), 0]);
    await stop(service);
    write(OLD_SECRET);
    const behind = await start(newer);
    expect([await storedSecret(behind), await gaugeOf(behind)]).toEqual([sha256(NEW_SECRET), 1]);
  });

  it('is applied with a higher revision, and is recognized by its content with a lower or the same one', async () => {
    expect(await restart(fileOf(registry('Five', OLD_SECRET, { revision: 5 })))).toEqual(['Five', 0]);
    expect(await restart(fileOf(registry('Never seen', OLD_SECRET, { revision: 4 })))).toEqual(['Never seen', 0]);
    expect(await restart(fileOf(registry('Five', OLD_SECRET, { revision: 5 })))).toEqual(['Never seen', 1]);
    expect(await restart(fileOf(registry('Also five', OLD_SECRET, { revision: 5 })))).toEqual(['Also five', 0]);
    expect(await restart(fileOf(registry('Five', OLD_SECRET, { revision: 5 })))).toEqual(['Also five', 1]);
    expect(await restart(fileOf(registry('Five', OLD_SECRET, { revision: 6 })))).toEqual(['Five', 0]);
    expect(await restart(fileOf(registry('Without')))).toEqual(['Without', 0]);
    expect(await restart(fileOf(registry('Never seen', OLD_SECRET, { revision: 4 })))).toEqual(['Without', 1]);
    expect(await restart(fileOf(registry('Seven', OLD_SECRET, { revision: 7 })))).toEqual(['Seven', 0]);
  });

  it.each([-1, '2', 2_147_483_648])('is rejected with the revision %j', async (revision) => {
    await expect(start(fileOf(registry('X', OLD_SECRET, { revision })))).rejects.toThrow(/revision: must /);
  });

  it('is applied when an operator restores it in a running process, and stays in force after a restart', async () => {
    shortenPauses(FILE_CHECK_PAUSE_MS);
    const [older, newer] = [stringify(registry('Older')), stringify(registry('Newer'))];
    const path = fileOf(older);
    const service = await start(path);
    writeFileSync(path, newer);
    await expect.poll(() => nameIn(service)).toBe('Newer');
    writeFileSync(path, older);
    await expect.poll(() => nameIn(service)).toBe('Older');
    expect(await gaugeOf(service)).toBe(0);
    await stop(service);
    expect(await restart(path)).toEqual(['Older', 0]);
    expect(await restart(fileOf(newer))).toEqual(['Older', 1]);
  });

  it('is not applied by a running process when only a secret file changes', async () => {
    shortenPauses(FILE_CHECK_PAUSE_MS);
    fileOf(OLD_SECRET, 'secret.txt');
    const service = await start(withFile('Older'));
    await restart(fileOf(registry('Newer')));
    fileOf(NEW_SECRET, 'secret.txt');
    await expect.poll(() => gaugeOf(service)).toBe(1);
    expect(await nameIn(service)).toBe('Newer');
    expect(warnings()).toHaveLength(1);
    expect(output.text).not.toContain('changed; the new content is in use');
  });

  it('loses to the newer file when processes start with both at the same time', async () => {
    let older = fileOf(registry('Older'));
    const one = await start(older);
    const other = await start(older);
    const apply = (service: TestService, path: string) =>
      registryFileOf(service)
        .apply(path)
        .then(
          () => 'applied',
          (error) => (error instanceof SupersededRegistryFileError ? 'superseded' : `${error}`),
        );
    const newer = fileOf(registry('Newer'));
    // a change without rows in the log, after which the file in force is compared with the database again
    await one.application.get(DataSource).query('UPDATE registry_revision SET revision = revision + 1');
    // The newer file is applied after the process has read that its own file is in force, and before it gets the lock.
    beforeNextTransaction(one, async () => expect(await apply(other, newer)).toBe('applied'));
    expect([await apply(one, older), await nameIn(one)]).toEqual(['superseded', 'Newer']);
    older = newer;
    for (let round = 0; round < 2; round++) {
      const path = fileOf(registry(`Newer ${round}`));
      const outcomes = await Promise.all([
        apply(one, older),
        apply(other, path),
        apply(one, path),
        apply(other, older),
        apply(one, older),
      ]);
      expect([outcomes[1], outcomes[2]]).toEqual(['applied', 'applied']);
      expect(await nameIn(one)).toBe(`Newer ${round}`);
      expect(await apply(other, older)).toBe('superseded');
      older = path;
    }
  });

  it('is written and audited once by two processes that apply it at the same time, and ends tokens once', async () => {
    const withAgents = (passwords: Record<string, string>) => ({
      organizations: [{ id: ACME, name: 'Acme', public_clients: [] }],
      agents: Object.entries(passwords).map(([email, password]) => ({
        ...{ email, password, name: 'Agent', organization_id: ACME, scopes: [] },
      })),
    });
    const first = fileOf(withAgents({ 'old@acme.example': 'the first password' }));
    const [one, other] = [await start(first), await start(first)];
    const newPasswords = { 'old@acme.example': 'the second password', 'new@acme.example': 'the first password' };
    const path = fileOf(withAgents(newPasswords));
    const audits = () => [...one.audit, ...other.audit].filter(({ event }) => event === 'registry.changed').length;
    const before = audits();
    // the other process applies the file after this process has hashed the passwords, and before it gets the lock
    beforeNextTransaction(one, () => registryFileOf(other).apply(path));
    const applied = await registryFileOf(one).apply(path);
    expect(applied.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged', 'unchanged']);
    const agents = await one.application.get(DataSource).query('SELECT email, generation FROM agent ORDER BY email');
    expect(agents.map(({ generation }: { generation: number | null }) => generation ?? 0)).toEqual([0, 1]);
    expect(audits() - before).toBe(2);
  });

  it('is remembered without the hashes of its password groups', async () => {
    const agents = Array.from({ length: 33 }, (_, n) => ({
      ...{ email: `agent-${n}@acme.example`, name: 'Agent', organization_id: ACME, scopes: [] },
      password_file: 'agent.password',
    }));
    fileOf('the password of the agents', 'agent.password');
    const service = await start(fileOf(registry('Older', OLD_SECRET, { agents })));
    const rows = service.application.get(DataSource).getRepository(AppliedRegistryFile);
    const haveGroups = async () =>
      (await rows.find({ order: { sequence: 'ASC' } })).map(({ passwordGroups }) => passwordGroups !== null);
    expect(await haveGroups()).toEqual([true]);
    await restart(fileOf(registry('Newer')));
    expect(await haveGroups()).toEqual([false, false]);
  });

  it('is remembered without a fast hash of its passwords, and at most 1,000 files are remembered', async () => {
    const text = stringify(registry('Older'));
    const service = await start(fileOf(text));
    const rows = service.application.get(DataSource).getRepository(AppliedRegistryFile);
    const [row] = await rows.find();
    const hashes = [row?.contentHash, row?.textHash];
    for (const algorithm of ['sha256', 'sha1', 'md5'])
      expect(hashes).not.toContain(createHash(algorithm).update(text).digest('hex'));
    const many = Array.from({ length: 1_010 }, (_, n) => ({
      ...{ contentHash: `${n}`, textHash: `${n}`, highestRevision: null, appliedAt: new Date(), grantsHash: '' },
      sequence: n + 10,
    }));
    await rows.insert(many);
    expect(await restart(fileOf(registry('Newer')))).toEqual(['Newer', 0]);
    expect(await rows.count()).toBe(1_000);
    expect(await rows.existsBy({ sequence: 1_020 })).toBe(true);
  });

  it('is not a file that another process applies at the same time', async () => {
    const first = fileOf(registry('First'));
    const one = await start(first);
    const other = await start(first);
    const newer = fileOf(registry('Newer'));
    const sqlDatabase = one.application.get(Database);
    const read = sqlDatabase.read.bind(sqlDatabase);
    let isAppliedByOther = false;
    vi.spyOn(sqlDatabase, 'read').mockImplementation(async (entity, options) => {
      if (entity === AppliedRegistryFile && options?.where && !isAppliedByOther) {
        isAppliedByOther = true;
        await registryFileOf(other).apply(newer);
      }
      return read(entity, options);
    });
    await registryFileOf(one).apply(newer);
    expect(isAppliedByOther).toBe(true);
    expect(await nameIn(one)).toBe('Newer');
  });
});
