import type { MigrationInterface, QueryRunner } from 'typeorm';
import { addColumns, Columns, NULLABLE } from './schema.js';

const TABLES = ['client_application', 'resource_server'];

/** The keys by which clients and resource servers authenticate without a secret. */
export class AssertionKeys1796000000011 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await addColumns(runner, table, [new Columns(runner).json('assertion_keys', NULLABLE)]);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const table of TABLES) await runner.dropColumn(table, 'assertion_keys');
  }
}
