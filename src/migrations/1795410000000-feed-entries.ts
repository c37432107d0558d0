import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns } from './schema.js';

const TABLE = 'revocation_feed';
const COLUMNS = ['entries', 'entries_count'];

/** The number of entries in the feed, which limits how many revocations callers can cause. */
export class FeedEntries1795410000000 implements MigrationInterface {
  readonly name = 'FeedEntries1795410000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const name of COLUMNS) {
      const column = new Columns(runner).integer(name, { default: 0 });
      if (!(await runner.hasColumn(TABLE, name))) await runner.addColumn(TABLE, new TableColumn(column));
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumns(TABLE, COLUMNS);
  }
}
