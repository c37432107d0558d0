import { type MigrationInterface, type QueryRunner, TableColumn, type TableColumnOptions, TableIndex } from 'typeorm';
import { Columns, createTables, dropTables, NULLABLE } from './schema.js';

const REVOCATIONS = 'revocation';
const STATE = 'revocation_feed';
const INDEXED_COLUMNS = ['position', 'published_until'];

/**
 * The positions of revocations in the feed. Every new column is nullable: rows of release 1 have none of the values,
 * and such rows get a position like any other new row.
 */
export class RevocationFeed1795400000000 implements MigrationInterface {
  readonly name = 'RevocationFeed1795400000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    for (const column of newColumns(its))
      if (!(await runner.hasColumn(REVOCATIONS, column.name)))
        await runner.addColumn(REVOCATIONS, new TableColumn(column));
    const existing = await runner.getTable(REVOCATIONS);
    for (const column of INDEXED_COLUMNS) {
      const name = indexOf(column);
      if (existing?.indices.some((index) => index.name === name)) continue;
      await runner.createIndex(REVOCATIONS, new TableIndex({ name, columnNames: [column] }));
    }
    await createTables(runner, [
      {
        name: STATE,
        columns: [
          its.integer('id', { isPrimary: true }),
          its.bigInteger('position'),
          its.text('publisher', 36),
          its.flag('has_backlog'),
        ],
      },
    ]);
    // the rows that exist already are the first backlog
    if ((await runner.query(`SELECT 1 FROM ${STATE}`)).length === 0)
      await runner.query(`INSERT INTO ${STATE} (id, position, publisher, has_backlog) VALUES (1, 0, '', 1)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, [STATE]);
    for (const column of INDEXED_COLUMNS) await runner.dropIndex(REVOCATIONS, indexOf(column));
    await runner.dropColumns(
      REVOCATIONS,
      newColumns(new Columns(runner)).map(({ name }) => name),
    );
  }
}

const indexOf = (column: string) => `${REVOCATIONS}_${column}`;

function newColumns(its: Columns): TableColumnOptions[] {
  return [
    its.bigInteger('position', NULLABLE),
    its.time('published_until', NULLABLE),
    its.time('published_before', NULLABLE),
    its.integer('generation', NULLABLE),
    its.text('audience', 16, NULLABLE),
  ];
}
