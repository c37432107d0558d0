import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns, NULLABLE } from './schema.js';

/** Which public clients an organization admits; the secrets that a client had before its current one. */
export class TenantsAndSecrets1795312000000 implements MigrationInterface {
  readonly name = 'TenantsAndSecrets1795312000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    for (const [table, column] of [
      ['organization', its.json('public_clients', NULLABLE)],
      ['client_application', its.json('previous_secrets', NULLABLE)],
    ] as const) {
      if (!(await runner.hasColumn(table, column.name))) await runner.addColumn(table, new TableColumn(column));
    }
    // every public client was usable in these organizations before there was a column to say so
    await runner.query(`UPDATE organization SET public_clients = '"all"' WHERE public_clients IS NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumn('client_application', 'previous_secrets');
    await runner.dropColumn('organization', 'public_clients');
  }
}
