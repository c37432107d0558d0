import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns, createTables, dropTables, NULLABLE } from './schema.js';

/** The public clients that an organization allows, the replaced secrets of clients, and the applied registry files. */
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
    await createTables(runner, [
      {
        name: 'applied_registry_file',
        columns: [
          its.key('content_hash', 64),
          its.text('text_hash', 64),
          its.integer('sequence'),
          its.integer('highest_revision', NULLABLE),
          its.time('applied_at'),
        ],
        indices: [{ name: 'applied_registry_file_sequence', columnNames: ['sequence'], isUnique: true }],
      },
    ]);
    // before this column existed, each organization allowed all public clients
    await runner.query(`UPDATE organization SET public_clients = '"all"' WHERE public_clients IS NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['applied_registry_file']);
    await runner.dropColumn('client_application', 'previous_secrets');
    await runner.dropColumn('organization', 'public_clients');
  }
}
