import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns, NULLABLE } from './schema.js';

const TABLE = 'client_application';

/** The previous secret of a client, and the time until which it is valid. */
export class ClientSecrets1795220000000 implements MigrationInterface {
  readonly name = 'ClientSecrets1795220000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    for (const column of [
      its.text('previous_secret_hash', 64, NULLABLE),
      its.time('previous_secret_expires_at', NULLABLE),
    ]) {
      if (!(await runner.hasColumn(TABLE, column.name))) await runner.addColumn(TABLE, new TableColumn(column));
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumns(TABLE, ['previous_secret_hash', 'previous_secret_expires_at']);
  }
}
