import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns, NULLABLE } from './schema.js';

const TABLE = 'client_application';

/** The lifetime of the customer tokens of a client. */
export class ClientTokenLifetimes1795323000000 implements MigrationInterface {
  readonly name = 'ClientTokenLifetimes1795323000000';

  async up(runner: QueryRunner): Promise<void> {
    const column = new Columns(runner).integer('customer_token_ttl', NULLABLE);
    if (!(await runner.hasColumn(TABLE, column.name))) await runner.addColumn(TABLE, new TableColumn(column));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumn(TABLE, 'customer_token_ttl');
  }
}
