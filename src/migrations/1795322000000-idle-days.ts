import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns, NULLABLE } from './schema.js';

const TABLE = 'organization';

/** The days after which a browser no longer leads to a customer that it has not used. */
export class IdleDays1795322000000 implements MigrationInterface {
  readonly name = 'IdleDays1795322000000';

  async up(runner: QueryRunner): Promise<void> {
    const column = new Columns(runner).integer('idle_days', NULLABLE);
    if (!(await runner.hasColumn(TABLE, column.name))) await runner.addColumn(TABLE, new TableColumn(column));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumn(TABLE, 'idle_days');
  }
}
