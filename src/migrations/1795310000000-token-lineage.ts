import { type MigrationInterface, type QueryRunner, TableColumn, type TableColumnOptions } from 'typeorm';
import { Columns, createTables, dropTables, NULLABLE } from './schema.js';

/**
 * Generations of customers and agents, the network of a first use, and the values that the service records about
 * itself. Every new column is nullable, because processes of release 1 go on inserting rows without it during an
 * upgrade.
 */
export class TokenLineage1795310000000 implements MigrationInterface {
  readonly name = 'TokenLineage1795310000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    // computed in each run, because a run that failed half-way has not stored the result
    const isNew = !(await hasRows(runner, ['organization', 'client_application', 'customer_identity']));
    for (const [table, columns] of newColumns(its)) {
      for (const column of columns)
        if (!(await runner.hasColumn(table, column.name))) await runner.addColumn(table, new TableColumn(column));
    }
    await createTables(runner, [{ name: 'recorded_value', columns: [its.key('name', 64), its.integer('value')] }]);
    const recorded = await runner.query("SELECT 1 FROM recorded_value WHERE name = 'complete_release'");
    // a database without data has no processes of release 1 to be compatible with
    if (isNew && recorded.length === 0)
      await runner.query("INSERT INTO recorded_value (name, value) VALUES ('complete_release', 2)");
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['recorded_value']);
    for (const [table, columns] of newColumns(new Columns(runner))) {
      await runner.dropColumns(
        table,
        columns.map(({ name }) => name),
      );
    }
  }
}

function newColumns(its: Columns): [table: string, columns: TableColumnOptions[]][] {
  return [
    ['customer_identity', [its.integer('generation', NULLABLE)]],
    ['agent', [its.integer('generation', NULLABLE)]],
    ['revocation', [its.time('generation_raised_at', NULLABLE)]],
    ['one_time_code', [its.text('consumed_network', 64, NULLABLE)]],
    ['refresh_family', [its.integer('generation', NULLABLE), its.text('rotated_network', 64, NULLABLE)]],
    ['refresh_token', [its.time('replaced_at', NULLABLE)]],
  ];
}

async function hasRows(runner: QueryRunner, tables: string[]): Promise<boolean> {
  for (const table of tables) if ((await runner.query(`SELECT 1 FROM ${table} LIMIT 1`)).length > 0) return true;
  return false;
}
