import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { Database } from '../../../src/platform/database/database.js';
import { RegistryFile } from '../../../src/registry/file/registry-file.js';
import { ACME } from '../../support/test-registry.js';
import { startTestService, type TestService } from '../../support/test-service.js';

/** A registry with agents, by their email and password. */
const registry = (passwords: Record<string, string>) => ({
  organizations: [{ id: ACME, name: 'Acme', public_clients: [] }],
  agents: Object.entries(passwords).map(([email, password]) => ({
    ...{ email, password, name: 'Agent', organization_id: ACME, scopes: [] },
  })),
});

describe('two processes that apply the same new registry file at the same time', () => {
  let database: TestDatabase;
  let one: TestService;
  let other: TestService;
  beforeEach(async () => {
    database = await createTestDatabase();
    const first = registry({ 'old@acme.example': 'the first password' });
    one = await startTestService({ database, registry: first });
    other = await startTestService({ database, registry: first });
  });
  afterEach(async () => {
    await one?.stop();
    await other?.stop();
    await database.remove();
  });

  const apply = ({ application }: TestService, path: string) =>
    application.get(RegistryFile, { strict: false }).apply(path);
  const audits = () => [...one.audit, ...other.audit].filter(({ event }) => event === 'registry.changed').length;

  it('write and audit each entry once, and end tokens once', async () => {
    const path = join(database.folder, `${randomUUID()}.yaml`);
    const passwords = { 'old@acme.example': 'the second password', 'new@acme.example': 'the first password' };
    writeFileSync(path, stringify(registry(passwords)));
    const before = audits();
    const sqlDatabase = one.application.get(Database);
    const transaction = sqlDatabase.transaction.bind(sqlDatabase);
    // the other process applies the file after this process has hashed the passwords, and before it gets the lock
    const spy = vi.spyOn(sqlDatabase, 'transaction').mockImplementationOnce(async (work) => {
      await apply(other, path);
      return transaction(work);
    });
    const applied = await apply(one, path);
    expect(spy).toHaveBeenCalled();
    expect(applied.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged', 'unchanged']);
    const agents = await one.application.get(DataSource).query('SELECT email, generation FROM agent ORDER BY email');
    expect(agents.map(({ generation }: { generation: number | null }) => generation ?? 0)).toEqual([0, 1]);
    expect(audits() - before).toBe(2);
  });
});
