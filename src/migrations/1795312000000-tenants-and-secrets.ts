import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns, NULLABLE } from './schema.js';

/** Which public clients an organization admits. */
export class TenantsAndSecrets1795312000000 implements MigrationInterface {
  readonly name = 'TenantsAndSecrets1795312000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    const column = its.json('public_clients', NULLABLE);
    if (!(await runner.hasColumn('organization', column.name)))
      await runner.addColumn('organization', new TableColumn(column));
    // every public client was usable in these organizations before there was a column to say so
    await runner.query(`UPDATE organization SET public_clients = '"all"' WHERE public_clients IS NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumn('organization', 'public_clients');
  }
}
