import { join } from 'node:path';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestBrowser } from '../../../support/cookie-grant.js';
import { connectTo } from '../../../support/database-connection.js';
import { useDatabase } from '../../../support/databases.js';
import { environmentOf, runCli, startServiceProcess } from '../../../support/processes.js';
import { rememberedPair, rememberingRegistry } from '../../../support/remember.js';
import { writeRegistry } from '../../../support/test-registry.js';
import { type HttpClient, httpClientOf, request } from '../../../support/test-service.js';

/** What a later release may do (docs/decisions/0015): a column, a table, an index, and its migration's name. */
const LATER_SCHEMA = [
  'ALTER TABLE customer ADD later_column integer',
  'CREATE TABLE later_table (id varchar(36))',
  'ALTER TABLE session ADD later_column varchar(36)',
  'CREATE INDEX later_index ON session (seen_day)',
  "INSERT INTO migrations (timestamp, name) VALUES (1999999999999, 'Later1999999999999')",
];

const database = useDatabase();
let dataSource: DataSource;
beforeAll(async () => {
  dataSource = await connectTo(database);
});
afterAll(() => dataSource?.destroy());

/** A new customer, who returns and moves to another browser, which returns too. @returns the statuses */
async function useService(client: HttpClient): Promise<number[]> {
  const [phone, laptop] = [new TestBrowser(client), new TestBrowser(client)];
  const responses = [await phone.visit(), await phone.visit()];
  laptop.cookie = await rememberedPair(client, responses[0]?.body.access_token);
  responses.push(await laptop.visit(), await phone.visit());
  expect(new Set(responses.map(({ body }) => body.entity_id)).size).toBe(1);
  return responses.map(({ status }) => status);
}

describe('protocol §9.6: a later schema', () => {
  it('is applied while a process of this build serves, and this build migrates, restarts and serves on it', async () => {
    const REGISTRY_FILE = writeRegistry(join(database.folder, 'registry.yaml'), rememberingRegistry());
    const environment = { ...environmentOf(database), REGISTRY_FILE, MIGRATE_ON_START: 'true' };
    const old = await startServiceProcess(environment);
    const client = httpClientOf(old.url);
    const statuses: number[] = [];
    let isOver = false;
    const load = async () => {
      while (!isOver) statuses.push(...(await useService(client)));
    };
    const running = Promise.all([load(), load(), load()]);
    for (const sql of LATER_SCHEMA) {
      await dataSource.query(sql);
      const before = statuses.length;
      await expect.poll(() => statuses.length).toBeGreaterThan(before + 3 * 4);
    }
    expect(await runCli(['migrate'], environment)).toMatchObject({ code: 0, stdout: 'up to date\n' });
    isOver = true;
    await running;
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect((await request(`${old.managementUrl}/health/ready`, {})).status).toBe(200);
    expect(await old.terminate()).toBe(0);
    const restarted = await startServiceProcess(environment);
    expect(await useService(httpClientOf(restarted.url))).toEqual([200, 200, 200, 200]);
    expect(await restarted.terminate()).toBe(0);
  });
});
