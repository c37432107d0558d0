import { DataSource } from 'typeorm';
import { expect, vi } from 'vitest';
import type { TestBrowser } from './cookie-grant.js';
import { clientOf } from './statements.js';
import type { TestService } from './test-service.js';

const BATCH_SIZES = [1, 8];

/** Checks that MariaDB or MySQL recognizes a browser by keys only: no scan, no temporary table, no sorting. */
export async function expectKeysOnly(service: TestService, browser: TestBrowser): Promise<void> {
  const client = clientOf(service);
  await browser.visit();
  const select = vi.spyOn(client, 'select');
  await browser.visit();
  const calls = select.mock.calls.filter(([statement]) => /FROM browser\s/.test(statement.text(client.dialect)));
  select.mockRestore();
  const [[statement, parameters] = expect.fail('no browser was recognized')] = calls;
  expect(calls).toHaveLength(1);
  for (const size of BATCH_SIZES) {
    const text = `EXPLAIN FORMAT=TRADITIONAL ${statement.text(client.dialect, size)}`;
    const rows: { type: string | null; table: string | null; Extra: string | null }[] = await service.application
      .get(DataSource)
      .query(text, Array(size).fill(parameters).flat());
    expect(rows.filter(({ table }) => table?.startsWith('<') === false)).toHaveLength(size * TABLE_COUNT);
    for (const { type, Extra } of rows) {
      expect(['const', 'eq_ref']).toContain(type);
      expect(Extra ?? '').not.toMatch(/temporary|sort/);
    }
  }
}

/** The browser, its session in the organization and group, and the customer and the agent's session of this session. */
const TABLE_COUNT = 4;
