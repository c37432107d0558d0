import { setTimeout as sleep } from 'node:timers/promises';
import { getRepositoryToken } from '@nestjs/typeorm';
import type { EntityManager, Repository } from 'typeorm';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { Database } from '../../../src/platform/database/database.js';
import { isDuplicate } from '../../../src/platform/database/database-errors.js';
import { insertStatement } from '../../../src/platform/database/statement.js';
import { type RequestContext, requestContext } from '../../../src/platform/request-context/request-context.js';
import { ProofUse } from '../../../src/redemption/proof-use.entity.js';
import { metricOf } from '../../support/management-api.js';
import { clientOf } from '../../support/statements.js';
import { useService } from '../../support/use-service.js';

const service = useService();
let manager: EntityManager;
let repository: Repository<ProofUse>;
beforeAll(() => {
  manager = service.application.get(Database).manager;
  repository = service.application.get(getRepositoryToken(ProofUse) as never, { strict: false });
});

const expiresAt = new Date('2031-02-03T04:05:06.789Z');
const done = () => metricOf(service, 'cas_database_statements_total{outcome="done"}');

describe('a manager or a repository outside of a transaction', () => {
  it('inserts, reads, changes and deletes rows, each by a statement that is counted', async () => {
    const before = await done();
    await repository.insert({ hash: 'one', uses: 1, expiresAt });
    expect(await repository.findOneBy({ hash: 'one' })).toEqual({ hash: 'one', uses: 1, expiresAt });
    const later = new Date(expiresAt.getTime() + 1);
    expect(await repository.update({ hash: 'one' }, { expiresAt: later })).toMatchObject({ affected: 1 });
    const builder = manager.createQueryBuilder(ProofUse, 'proof').where('proof.hash = :hash', { hash: 'one' });
    expect(await builder.getMany()).toEqual([{ hash: 'one', uses: 1, expiresAt: later }]);
    expect(await manager.delete(ProofUse, { hash: 'one' })).toMatchObject({ affected: 1 });
    expect(await manager.count(ProofUse)).toBe(0);
    expect((await done()) - before).toBeGreaterThanOrEqual(6);
  });

  it('rejects with the error of the driver if a key exists', async () => {
    await repository.insert({ hash: 'two', uses: 1, expiresAt });
    await expect(repository.insert({ hash: 'two', uses: 1, expiresAt })).rejects.toSatisfy(isDuplicate);
  });

  it('begins no transaction, which would have no limit', async () => {
    const save = () => repository.save({ hash: 'three', uses: 1, expiresAt });
    for (const begin of [save, () => manager.transaction(save), () => manager.dataSource.createQueryRunner().connect()])
      await expect(begin()).rejects.toThrow('use Database.transaction');
    expect(await repository.existsBy({ hash: 'three' })).toBe(false);
  });

  it('sends nothing for a request whose time is over', async () => {
    const late = { deadline: performance.now() - 1 } as RequestContext;
    const insert = async () => void (await repository.insert({ hash: 'four', uses: 1, expiresAt }));
    const find = async () => void (await manager.find(ProofUse));
    for (const send of [insert, find])
      await expect(requestContext.run(late, send)).rejects.toMatchObject({ status: 503 });
    expect(await repository.existsBy({ hash: 'four' })).toBe(false);
  });
});

it.runIf(onMariadb)(
  'a batch of INSERTs is not sent if no request waits for it any more when it has a connection',
  async () => {
    const client = clientOf(service);
    const INSERT = insertStatement({ into: ProofUse, columns: ['hash', 'uses', 'expires_at'], batch: true });
    const pool = Reflect.get(client, 'pool');
    const acquire = pool.acquire.bind(pool);
    const context = { deadline: performance.now() + 50 } as RequestContext;
    const execute: { mock: { calls: unknown[][] } }[] = [];
    vi.spyOn(pool, 'acquire').mockImplementation(async (timeoutMs) => {
      const connection = await acquire(timeoutMs);
      await sleep(100);
      execute.push(vi.spyOn(connection, 'execute'));
      return connection;
    });
    const inserts = ['five', 'six'].map((hash) => () => client.write(INSERT, [hash, 1, expiresAt]));
    const sent = requestContext.run(context, () => Promise.allSettled(inserts.map((insert) => insert())));
    const late = { status: 'rejected', reason: expect.objectContaining({ code: 'DEADLINE_EXCEEDED' }) };
    expect(await sent).toEqual([late, late]);
    const texts = execute.flatMap(({ mock }) => mock.calls.map(([sql]) => sql));
    expect(texts.filter((sql) => /proof_use/.test(String(sql)))).toEqual([]);
  },
);
