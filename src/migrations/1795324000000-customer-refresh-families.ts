import { type MigrationInterface, type QueryRunner, TableColumn, type TableColumnOptions, TableIndex } from 'typeorm';
import { Columns, createTables, dropTables, NULLABLE } from './schema.js';

const FAMILIES = 'refresh_family';
const ANCESTORS = 'refresh_family_ancestor';

/** The indexes by which the families of a customer, and the tokens of a family, are found. */
const INDEXES = [
  { table: FAMILIES, column: 'customer_id' },
  { table: 'refresh_token', column: 'family_id' },
];

/**
 * Refresh families of customers. Every new column is nullable, because processes of release 1 go on inserting rows
 * without it during an upgrade.
 */
export class CustomerRefreshFamilies1795324000000 implements MigrationInterface {
  readonly name = 'CustomerRefreshFamilies1795324000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    for (const column of newColumns(its))
      if (!(await runner.hasColumn(FAMILIES, column.name))) await runner.addColumn(FAMILIES, new TableColumn(column));
    for (const { table, column } of INDEXES) {
      const name = `${table}_${column}`;
      const existing = await runner.getTable(table);
      if (existing?.indices.some((index) => index.name === name)) continue;
      await runner.createIndex(table, new TableIndex({ name, columnNames: [column] }));
    }
    await createTables(runner, [
      {
        name: ANCESTORS,
        columns: [its.key('family_id', 36), its.key('ancestor_id', 128)],
        indices: [{ name: `${ANCESTORS}_ancestor_id`, columnNames: ['ancestor_id'] }],
      },
    ]);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, [ANCESTORS]);
    for (const { table, column } of INDEXES) await runner.dropIndex(table, `${table}_${column}`);
    await runner.dropColumns(
      FAMILIES,
      newColumns(new Columns(runner)).map(({ name }) => name),
    );
  }
}

function newColumns(its: Columns): TableColumnOptions[] {
  return [its.text('customer_id', 36, NULLABLE), its.json('lineage', NULLABLE)];
}
