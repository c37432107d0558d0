import { type MigrationInterface, type QueryRunner, TableIndex } from 'typeorm';

const TABLE = 'browser_origin';
const INDEX = 'browser_origin_made_from';

/** The index by which forgetting a browser finds the browsers that were made from it. */
export class BrowsersMadeFrom1795351000000 implements MigrationInterface {
  readonly name = 'BrowsersMadeFrom1795351000000';

  async up(runner: QueryRunner): Promise<void> {
    const existing = await runner.getTable(TABLE);
    if (existing?.indices.some(({ name }) => name === INDEX)) return;
    await runner.createIndex(TABLE, new TableIndex({ name: INDEX, columnNames: ['made_from'] }));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropIndex(TABLE, INDEX);
  }
}
