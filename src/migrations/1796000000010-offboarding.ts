import { type MigrationInterface, type QueryRunner, TableIndex } from 'typeorm';
import { addColumns, Columns, NULLABLE } from './schema.js';

const INDEX = 'customer_of_organization';

/** When an organization is erased, and the index by which its customers are found. */
export class Offboarding1796000000010 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await addColumns(runner, 'organization', [new Columns(runner).time('offboarding_at', NULLABLE)]);
    const table = await runner.getTable('customer');
    if (table?.indices.some(({ name }) => name === INDEX)) return;
    await runner.createIndex(
      'customer',
      new TableIndex({ name: INDEX, columnNames: ['organization_id', 'entity_id'] }),
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropIndex('customer', INDEX);
    await runner.dropColumn('organization', 'offboarding_at');
  }
}
