import { type MigrationInterface, type QueryRunner, TableIndex } from 'typeorm';
import { addColumns, Columns, NULLABLE } from './schema.js';

const TABLE = 'client_application';
const INDEX = 'client_application_agent_id';

/** The agent for whom a client gets tokens with its own credentials. */
export class ClientAgent1796000000013 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await addColumns(runner, TABLE, [new Columns(runner).text('agent_id', 36, NULLABLE)]);
    const table = await runner.getTable(TABLE);
    if (table?.indices.some(({ name }) => name === INDEX)) return;
    await runner.createIndex(TABLE, new TableIndex({ name: INDEX, columnNames: ['agent_id'] }));
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropIndex(TABLE, INDEX);
    await runner.dropColumn(TABLE, 'agent_id');
  }
}
