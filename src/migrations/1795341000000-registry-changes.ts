import { type MigrationInterface, type QueryRunner, TableColumn } from 'typeorm';
import { Columns, createTables, dropTables, expiryIndex, NULLABLE } from './schema.js';

const APPLIED_FILES = 'applied_registry_file';

/** The log of changes of the registry, and the state in which an applied registry file left it. */
export class RegistryChanges1795341000000 implements MigrationInterface {
  readonly name = 'RegistryChanges1795341000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    await createTables(runner, [
      {
        name: 'registry_change',
        columns: [
          its.integer('revision', { isPrimary: true }),
          its.key('resource', 64),
          its.key('entry_key', 128),
          its.time('expires_at'),
        ],
        indices: expiryIndex('registry_change'),
      },
    ]);
    for (const column of newColumns(its)) {
      if (!(await runner.hasColumn(APPLIED_FILES, column.name))) {
        await runner.addColumn(APPLIED_FILES, new TableColumn(column));
      }
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    const names = newColumns(new Columns(runner)).map(({ name }) => name);
    await runner.dropColumns(APPLIED_FILES, names);
    await dropTables(runner, ['registry_change']);
  }
}

function newColumns(its: Columns) {
  return [
    its.text('grants_hash', 64, NULLABLE),
    its.json('secret_files', NULLABLE),
    its.json('password_groups', NULLABLE),
    its.integer('registry_revision', NULLABLE),
  ];
}
