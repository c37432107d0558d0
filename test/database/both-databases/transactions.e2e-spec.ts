import { setImmediate } from 'node:timers/promises';
import { DataSource, type EntityManager } from 'typeorm';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { OAuthError } from '../../../src/oauth/oauth-error.js';
import { Database } from '../../../src/platform/database/database.js';
import { poolOf } from '../../../src/platform/database/mysql-pool.js';
import { insertStatement, selectStatement } from '../../../src/platform/database/statement.js';
import { ProofUse } from '../../../src/redemption/proof-use.entity.js';
import { Organization } from '../../../src/registry/organization.entity.js';
import { connectTo } from '../../support/database-connection.js';
import { deferred } from '../../support/deferred.js';
import { metricOf } from '../../support/management-api.js';
import { useService } from '../../support/use-service.js';

const POOL_CONNECTION_COUNT = 4;

const service = useService({ environment: { DB_POOL_SIZE: String(POOL_CONNECTION_COUNT) } });
let database: Database;
let count = 0;
beforeAll(async () => {
  database = service.application.get(Database);
});

const EXPIRES_AT = new Date('2099-01-01T00:00:00Z');
const newName = () => `test_${++count}`;
const insert = (manager: EntityManager, name: string) =>
  manager.insert(ProofUse, { hash: name, uses: 1, expiresAt: EXPIRES_AT });
const exists = async (name: string) => {
  const find = selectStatement<[name: string], object>('SELECT 1 FROM proof_use WHERE hash = ?');
  return (await database.select(find, [name])).length > 0;
};

/** Work that ends when the test says so. */
const waiting = () => ({ begun: deferred(), ended: deferred() });

describe('a transaction', () => {
  it('is rolled back when its time is over, and sends no later statement', async () => {
    const [early, late] = [newName(), newName()];
    let later: Promise<unknown> = Promise.resolve();
    const gate = waiting();
    const work = (manager: EntityManager) => {
      const all = (async () => {
        await insert(manager, early);
        gate.begun.resolve();
        await gate.ended.promise;
        await insert(manager, late);
      })();
      later = all;
      return all;
    };
    const transaction = database.transaction(work, 300);
    await gate.begun.promise;
    await expect(transaction).rejects.toMatchObject({ status: 503 });
    gate.ended.resolve();
    await expect(later).rejects.toThrow();
    expect([await exists(early), await exists(late)]).toEqual([false, false]);
    await database.transaction((manager) => insert(manager, early));
    expect(await exists(early)).toBe(true);
  });

  it('rejects a write that does not use its manager and would not be a part of it', async () => {
    const statement = insertStatement({ into: ProofUse, columns: ['hash', 'uses', 'expires_at'] });
    const aside = () => database.insert(statement, [newName(), 1, EXPIRES_AT]);
    await expect(database.transaction(aside)).rejects.toThrow('must use the manager of the transaction');
    await expect(database.transaction(() => database.transaction(async () => undefined))).rejects.toThrow('manager');
    await expect(database.transaction(() => insert(database.manager, newName()))).rejects.toThrow('manager');
    await aside();
  });

  it('that the service refuses counts as done, and one with a wrong statement as failed', async () => {
    const count = (outcome: string) => metricOf(service, `cas_database_statements_total{outcome="${outcome}"}`);
    const [done, failed] = [await count('done'), await count('failed')];
    const refuse = async (manager: EntityManager) => {
      await insert(manager, newName());
      throw OAuthError.notFound();
    };
    await expect(database.transaction(refuse)).rejects.toThrow(OAuthError);
    expect(await count('done')).toBeGreaterThan(done);
    expect(await count('failed')).toBe(failed);
    await expect(database.transaction((manager) => manager.query('SELECT nothing'))).rejects.toThrow();
    expect(await count('failed')).toBe(failed + 1);
  });

  it('leaves no statement that was under way when its work rejected', async () => {
    const names = Array.from({ length: 10 }, newName);
    for (const name of names) {
      const fail = () => Promise.reject(new Error('the work failed'));
      const work = (manager: EntityManager) => Promise.all([fail(), insert(manager, name), insert(manager, name)]);
      await expect(database.transaction(work)).rejects.toThrow();
    }
    expect(await Promise.all(names.map(exists))).not.toContain(true);
  });

  it.runIf(onMariadb)(
    'runs at the same time as others, which leave half of the connections to other requests',
    async () => {
      const gates = Array.from({ length: 2 * POOL_CONNECTION_COUNT }, waiting);
      const names = gates.map(newName);
      const transactions = gates.map(({ begun, ended }, index) =>
        database.transaction(async (manager) => {
          await insert(manager, names[index] as string);
          begun.resolve();
          await ended.promise;
        }),
      );
      const [first, second, ...others] = gates as [ReturnType<typeof waiting>, ReturnType<typeof waiting>];
      await Promise.all([first.begun.promise, second.begun.promise]);
      expect(await Promise.all(Array.from({ length: 20 }, () => exists('none')))).not.toContain(true);
      for (const { ended } of [second, first, ...others]) ended.resolve();
      await Promise.all(transactions);
      expect(await Promise.all(names.map(exists))).not.toContain(false);
    },
  );
});

describe.runIf(onMariadb)('a statement whose time ends while it waits for a connection', () => {
  it('gives back the connection that comes then', async () => {
    const pool = poolOf(service.application.get(DataSource));
    const taken = await Promise.all(Array.from({ length: POOL_CONNECTION_COUNT }, () => pool.acquire(1_000)));
    await expect(database.manager.find(ProofUse)).rejects.toMatchObject({ status: 503 });
    // a timer of Node may end up to 1 ms before the time that it has to wait
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    await expect(exists('any')).rejects.toMatchObject({ status: 503 });
    for (const connection of taken) connection.release();
    await setImmediate();
    clock.mockRestore();
    await expect.poll(() => pool.usage()).toMatchObject({ inUse: 0, idle: POOL_CONNECTION_COUNT });
  });
});

it.runIf(onMariadb)('the metrics have the connections of the pool and their limit', async () => {
  await database.manager.find(ProofUse);
  expect(await metricOf(service, 'cas_database_connections_limit')).toBe(POOL_CONNECTION_COUNT);
  expect(await metricOf(service, 'cas_database_connections{state="idle"}')).toBeGreaterThan(0);
});

describe.runIf(onMariadb)('a read of entities that gets no response', () => {
  it('rejects after 1 s and leaves no connection in use, although the table is still locked', async () => {
    const locking = await connectTo(service.database);
    const lock = locking.createQueryRunner();
    await lock.query('LOCK TABLES organization WRITE');
    try {
      const read = expect(database.manager.find(Organization)).rejects.toThrow('did not respond within 1000 ms');
      const others = Array.from({ length: POOL_CONNECTION_COUNT - 1 }, () =>
        service.admin('GET', '/admin/organizations'),
      );
      await read;
      for (const { status } of await Promise.all(others)) expect(status).toBe(503);
      const pool = poolOf(service.application.get(DataSource));
      await expect.poll(() => pool.usage().inUse).toBe(0);
      expect(await exists('any')).toBe(false);
    } finally {
      await lock.release();
      await locking.destroy();
    }
  });
});
