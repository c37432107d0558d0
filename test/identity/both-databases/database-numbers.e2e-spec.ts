import { describe, expect, it, vi } from 'vitest';
import { MigratedSchema } from '../../../packages/conformance-kit/src/migrated-schema.js';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { startMariadb } from '../../../scripts/mariadb.js';
import { findMariadb } from '../../../scripts/test-programs.js';
import { Identities } from '../../../src/identity/identities.js';
import { Database } from '../../../src/platform/database/database.js';
import { selectStatement } from '../../../src/platform/database/statement.js';
import { bearer } from '../../support/authorization-headers.js';
import { manage } from '../../support/management-api.js';
import { ACME } from '../../support/test-registry.js';
import { startTestService } from '../../support/test-service.js';
import { useService } from '../../support/use-service.js';

/** An integer of the type BIGINT and one of the type DECIMAL, on MySQL and MariaDB. */
const FIND_NUMBERS = selectStatement<[], { counted: number; summed: number }>(
  'SELECT COUNT(*) AS counted, SUM(1) AS summed FROM organization',
);

const FIND_TIMES = selectStatement<[id: string], { created: Date; last_created_at: Date; erased_at: Date | null }>(
  `SELECT found.created_at AS created, found.erased_at,
  (SELECT MAX(created_at) FROM customer WHERE entity_id = found.entity_id) AS last_created_at
  FROM (SELECT * FROM customer WHERE entity_id = ?) AS found`,
);

const service = useService();

describe('the database', () => {
  it('returns integer expressions as numbers with each column type that a server gives them', async () => {
    const [row] = await service.application.get(Database).select(FIND_NUMBERS, []);
    expect([typeof row?.counted, typeof row?.summed]).toEqual(['number', 'number']);
    expect(row?.counted).toBeGreaterThan(0);
  });

  it.each(['UTC', 'America/New_York', 'Asia/Kolkata'])('returns the same times in the time zone %s', async (zone) => {
    vi.stubEnv('TZ', zone);
    try {
      expect(new Date(0).getTimezoneOffset() === 0).toBe(zone === 'UTC');
      const now = service.clock.now();
      const { entityId } = await service.application.get(Identities).create(ACME);
      const [row] = await service.application.get(Database).select(FIND_TIMES, [entityId]);
      expect(row).toEqual({ created: expect.any(Date), last_created_at: row?.created, erased_at: null });
      expect(Math.abs(Number(row?.created.getTime()) - now)).toBeLessThan(600_000);
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

describe.runIf(onMariadb && findMariadb())('a server with the sql_mode NO_BACKSLASH_ESCAPES', () => {
  it('stores values with quotes and backslashes as they are', async () => {
    const server = await startMariadb({ extra: ['--sql-mode=NO_BACKSLASH_ESCAPES,ANSI_QUOTES'] });
    const url = await server.createDatabase('escapes');
    await new MigratedSchema().createIn(url);
    const ADMIN_TOKEN = 'operator-of-the-escapes-test-0123';
    const database = { url, folder: server.dir, remove: () => server.stop() };
    const escaping = await startTestService({ database, environment: { ADMIN_TOKEN } });
    const asOperator = (method: string, path: string, body?: object) =>
      manage(escaping, method, path, bearer(ADMIN_TOKEN), body);
    const agent = { email: 'o@example.org', password: 'a password of the agent', organization_id: ACME, scopes: [] };
    const { id } = (await asOperator('POST', '/admin/agents', { ...agent, name: "user's name \\" })).body;
    expect((await asOperator('GET', `/admin/agents/${id}`)).body).toMatchObject({ name: "user's name \\" });
    for (const name of ["user\\'s name", "', owned_by_file = 1 -- \\", '\\" -- ']) {
      expect((await asOperator('PATCH', `/admin/agents/${id}`, { name })).status).toBe(200);
      expect((await asOperator('GET', `/admin/agents/${id}`)).body).toMatchObject({ name });
    }
    await escaping.stop();
    await server.stop();
  });
});
