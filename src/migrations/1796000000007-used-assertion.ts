import type { MigrationInterface, QueryRunner } from 'typeorm';
import { Columns, createTables, dropTables, expiryIndex } from './schema.js';

/** The assertions that were used. */
export class UsedAssertion1796000000007 implements MigrationInterface {
  readonly name = 'UsedAssertion1796000000007';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    await createTables(runner, [
      {
        name: 'used_assertion',
        columns: [its.key('hash', 64), its.text('used_by', 36), its.time('expires_at')],
        indices: expiryIndex('used_assertion'),
      },
    ]);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['used_assertion']);
  }
}
