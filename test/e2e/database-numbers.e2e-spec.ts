import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '../../src/platform/database/database.js';
import { selectStatement } from '../../src/platform/database/statement.js';
import { startTestService, type TestService } from '../support/test-service.js';

/** An integer of the type BIGINT and one of the type DECIMAL, on MySQL and MariaDB. */
const FIND_NUMBERS = selectStatement<[], { counted: number; summed: number }>(
  'SELECT COUNT(*) AS counted, SUM(1) AS summed FROM organization',
);

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service?.stop());

describe('the database', () => {
  it('returns integer expressions as numbers with each column type that a server gives them', async () => {
    const [row] = await service.application.get(Database).select(FIND_NUMBERS, []);
    expect([typeof row?.counted, typeof row?.summed]).toEqual(['number', 'number']);
    expect(row?.counted).toBeGreaterThan(0);
  });
});
