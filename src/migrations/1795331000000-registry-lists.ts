import { type MigrationInterface, type QueryRunner, TableIndex } from 'typeorm';

/** Indexes by which the admin API lists the clients and agents of an organization in the order of their keys. */
const INDEXES = [
  { table: 'client_application', columnNames: ['organization_id', 'client_id'] },
  { table: 'agent', columnNames: ['organization_id', 'id'] },
];

export class RegistryLists1795331000000 implements MigrationInterface {
  readonly name = 'RegistryLists1795331000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const { table, columnNames } of INDEXES) {
      const name = `${table}_of_organization`;
      const existing = await runner.getTable(table);
      if (existing?.indices.some((index) => index.name === name)) continue;
      await runner.createIndex(table, new TableIndex({ name, columnNames }));
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { table } of INDEXES) await runner.dropIndex(table, `${table}_of_organization`);
  }
}
