import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'mysql2';
import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { Revocation } from '../../../src/access-token/revocation.entity.js';
import { NewCustomers } from '../../../src/identity/new-customers.js';
import { Database } from '../../../src/platform/database/database.js';
import { insertStatement, selectStatement } from '../../../src/platform/database/statement.js';
import { requestContext } from '../../../src/platform/request-context/request-context.js';
import { TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { clientOf } from '../../support/statements.js';
import { INFO } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const PARALLEL_REQUEST_COUNT = 40;

const service = useService();

const browsers = () => Array.from({ length: PARALLEL_REQUEST_COUNT }, () => new TestBrowser(service));
const visit = (all: TestBrowser[]) => Promise.all(all.map((browser) => browser.visit()));

describe('parallel requests', () => {
  it('create one customer each, which exists as soon as its response is sent', async () => {
    const all = browsers();
    const responses = await visit(all);
    expect(responses.map(({ status }) => status)).toEqual(Array(PARALLEL_REQUEST_COUNT).fill(200));
    const ids = responses.map(({ body }) => body.entity_id);
    expect(new Set(ids).size).toBe(PARALLEL_REQUEST_COUNT);
    const again = await visit(all);
    expect(again.map(({ body }) => body.entity_id)).toEqual(ids);
  });

  it('get their own customers, also when some of the requests have invalid cookies', async () => {
    const all = browsers();
    const ids = (await visit(all)).map(({ body }) => body.entity_id);
    const [thief, owner] = all as [TestBrowser, TestBrowser];
    thief.cookie = `${thief.cookie?.split('; ')[0]}; ${owner.cookie?.split('; ')[1]}`; // Another customer’s secret.
    const responses = await visit(all);
    expect(responses.slice(1).map(({ body }) => body.entity_id)).toEqual(ids.slice(1));
    expect(ids).not.toContain(responses[0]?.body.entity_id);
  });

  it('are authenticated one by one: revoked bearer tokens are refused and valid ones accepted', async () => {
    const tokens = (await visit(browsers())).map(({ body }) => body.access_token as string);
    const isEnded = (_token: string, index: number) => index % 2 === 1;
    await Promise.all(
      tokens.filter(isEnded).map((token) => service.send('DELETE', TOKEN, { authorization: `Bearer ${token}` })),
    );
    const responses = await Promise.all(
      tokens.map((token) => service.send('GET', INFO, { authorization: `Bearer ${token}` })),
    );
    expect(responses.map(({ status }) => status)).toEqual(tokens.map((token, n) => (isEnded(token, n) ? 401 : 200)));
  });

  it.runIf(onMariadb)('cause fewer database round trips than there are requests', async () => {
    const all = browsers();
    await visit(all);
    const { pool } = service.application.get(DataSource).driver as unknown as { pool: Pool };
    const getConnection = vi.spyOn(pool, 'getConnection');
    for (let round = 0; round < 5; round++) await visit(all);
    expect(getConnection.mock.calls.length).toBeLessThan(5 * PARALLEL_REQUEST_COUNT * 0.75);
    getConnection.mockRestore();
  });

  it('get customers in one transaction, and each waits for it until its own deadline only', async () => {
    const newCustomers = service.application.get(NewCustomers);
    const insert = newCustomers.insert.bind(newCustomers);
    const all = [new TestBrowser(service), new TestBrowser(service)];
    const arrived: (() => void)[] = [];
    vi.spyOn(newCustomers, 'insert').mockImplementation(async (customer) => {
      await new Promise<void>((resolve) => {
        arrived.push(resolve);
        if (arrived.length === 1) requestContext.required().deadline = performance.now() + 500;
        if (arrived.length === all.length) for (const resume of arrived) resume();
      });
      return insert(customer);
    });
    const client = clientOf(service);
    const executeTogether = client.executeTogether.bind(client);
    const sent = vi.spyOn(client, 'executeTogether').mockImplementation(async (writes) => {
      await sleep(600);
      return executeTogether(writes);
    });
    const responses = await visit(all);
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 503]);
    const [[, browsers] = []] = sent.mock.calls[0] ?? [];
    expect(browsers?.parameters, 'an id and a hash for each browser').toHaveLength(2 * all.length);
    vi.restoreAllMocks();
  });

  it('fail one by one: a row that cannot be inserted fails alone', async () => {
    const database = service.application.get(Database);
    const columns = ['kind', 'value', 'issued_before', 'expires_at'] as const;
    const statement = insertStatement({ into: Revocation, columns, batch: true });
    const insert = (id: string | null) => database.insert(statement, ['jti', id as string, new Date(), new Date()]);
    const settled = await Promise.allSettled([insert('one'), insert(null), insert('three')]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const select = selectStatement<[], unknown>("SELECT value FROM revocation WHERE value IN ('one', 'three')");
    const rows = await database.select(select, []);
    expect(rows).toHaveLength(2);
  });
});
