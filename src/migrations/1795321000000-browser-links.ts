import { type MigrationInterface, type QueryRunner, TableColumn, type TableColumnOptions } from 'typeorm';
import { Columns, createTables, dropTables, NULLABLE } from './schema.js';

const CUSTOMERS = 'customer_identity';

/**
 * Links from browsers to customers that another browser or an agent created. Every new column is nullable, because
 * processes of release 1 go on inserting rows without it during an upgrade.
 */
export class BrowserLinks1795321000000 implements MigrationInterface {
  readonly name = 'BrowserLinks1795321000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    for (const column of newColumns(its))
      if (!(await runner.hasColumn(CUSTOMERS, column.name))) await runner.addColumn(CUSTOMERS, new TableColumn(column));
    await createTables(runner, [
      {
        name: 'browser_link',
        columns: [
          its.key('browser_id', 36),
          its.key('organization_id', 36),
          its.key('group_id', 64),
          its.text('entity_id', 36),
          its.integer('generation'),
          its.integer('scope_seen_day'),
          its.text('redemption', 36, NULLABLE),
          its.json('lineage', NULLABLE),
          its.text('agent_id', 36, NULLABLE),
          its.integer('agent_generation', NULLABLE),
        ],
        indices: [
          { name: 'browser_link_entity_id', columnNames: ['entity_id'] },
          { name: 'browser_link_redemption', columnNames: ['redemption'] },
        ],
      },
      {
        name: 'link_credential',
        columns: [its.key('hash', 64), its.text('browser_id', 36)],
        indices: [{ name: 'link_credential_browser_id', columnNames: ['browser_id'] }],
      },
      {
        name: 'link_ancestor',
        columns: [its.key('redemption', 36), its.key('ancestor_id', 128)],
        indices: [{ name: 'link_ancestor_ancestor_id', columnNames: ['ancestor_id'] }],
      },
      { name: 'browser_origin', columns: [its.key('browser_id', 36), its.text('made_from', 36)] },
    ]);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['browser_origin', 'link_ancestor', 'link_credential', 'browser_link']);
    await runner.dropColumns(
      CUSTOMERS,
      newColumns(new Columns(runner)).map(({ name }) => name),
    );
  }
}

function newColumns(its: Columns): TableColumnOptions[] {
  return [
    its.integer('link_generation', NULLABLE),
    its.time('unlinked_at', NULLABLE),
    its.integer('scope_seen_day', NULLABLE),
  ];
}
