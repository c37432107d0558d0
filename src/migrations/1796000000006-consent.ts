import type { MigrationInterface, QueryRunner } from 'typeorm';
import { Columns, createTables, dropTables } from './schema.js';

/** The scopes that agents have granted to clients. */
export class Consent1796000000006 implements MigrationInterface {
  readonly name = 'Consent1796000000006';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    await createTables(runner, [
      {
        name: 'consent',
        columns: [
          its.key('agent_id', 36),
          its.key('client_id', 128),
          its.text('scope', 1000),
          its.text('organization_id', 36),
          its.text('password_fingerprint', 16),
          its.time('given_at'),
        ],
      },
    ]);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['consent']);
  }
}
