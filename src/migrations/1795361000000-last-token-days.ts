import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns, NULLABLE } from './schema.js';

const TABLE = 'customer_identity';

/** The last day on which a customer got a token in another way than by its own browser. */
export class LastTokenDays1795361000000 implements MigrationInterface {
  readonly name = 'LastTokenDays1795361000000';

  async up(runner: QueryRunner): Promise<void> {
    const column = new Columns(runner).integer('last_token_day', NULLABLE);
    if (!(await runner.hasColumn(TABLE, column.name))) await runner.addColumn(TABLE, new TableColumn(column));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumn(TABLE, 'last_token_day');
  }
}
