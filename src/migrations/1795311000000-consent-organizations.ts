import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns, NULLABLE } from './schema.js';

const TABLE = 'consent';

/** The agent's organization and password fingerprint at the time of its consent. */
export class ConsentOrganizations1795311000000 implements MigrationInterface {
  readonly name = 'ConsentOrganizations1795311000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    for (const column of [its.text('organization_id', 36, NULLABLE), its.text('password_fingerprint', 16, NULLABLE)]) {
      if (!(await runner.hasColumn(TABLE, column.name))) await runner.addColumn(TABLE, new TableColumn(column));
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.dropColumns(TABLE, ['organization_id', 'password_fingerprint']);
  }
}
