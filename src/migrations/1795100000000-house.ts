import { type MigrationInterface, type QueryRunner, Table, type TableColumnOptions } from 'typeorm';

/** Organizations, client applications, agents and resource servers; browsers and the customer identities behind them. */
export class House1795100000000 implements MigrationInterface {
  readonly name = 'House1795100000000';

  async up(runner: QueryRunner): Promise<void> {
    // bytes compare as bytes: client and group ids that differ in case are different ids. SQLite compares so by itself.
    const exact: Partial<TableColumnOptions> =
      runner.connection.options.type === 'better-sqlite3' ? {} : { charset: 'utf8mb4', collation: 'utf8mb4_bin' };
    const text = (name: string, length: number, more: Partial<TableColumnOptions> = {}): TableColumnOptions => ({
      name,
      type: 'varchar',
      length: String(length),
      ...exact,
      ...more,
    });
    const id = (name: string, length: number): TableColumnOptions => text(name, length, { isPrimary: true });
    const json = (name: string, more: Partial<TableColumnOptions> = {}): TableColumnOptions => ({
      name,
      type: 'text',
      ...more,
    });
    const flag = (name: string): TableColumnOptions => ({ name, type: 'boolean' });
    const nullable = { isNullable: true };

    const tables: ConstructorParameters<typeof Table>[0][] = [
      {
        name: 'organization',
        columns: [id('id', 36), text('name', 200), flag('chat_between_groups'), json('grants'), flag('owned_by_file')],
      },
      {
        name: 'client_application',
        columns: [
          id('client_id', 128),
          text('name', 200),
          text('client_type', 16),
          text('organization_id', 36, nullable),
          text('secret_hash', 64, nullable),
          json('redirect_uris'),
          text('redirect_uri_match', 16),
          json('origins'),
          json('grant_types', nullable),
          json('scopes'),
          json('grants'),
          flag('owned_by_file'),
        ],
      },
      {
        name: 'resource_server',
        columns: [id('id', 128), text('secret_hash', 64), json('audiences'), flag('owned_by_file')],
      },
      {
        name: 'agent',
        columns: [
          id('id', 36),
          text('email', 254),
          text('name', 200),
          text('password_hash', 255),
          text('organization_id', 36),
          json('scopes'),
          flag('owned_by_file'),
        ],
        indices: [{ name: 'agent_email', columnNames: ['email'], isUnique: true }],
      },
      {
        name: 'registry_revision',
        columns: [
          { name: 'id', type: 'integer', isPrimary: true },
          { name: 'revision', type: 'integer' },
        ],
      },
      {
        name: 'customer_identity',
        columns: [
          id('entity_id', 36),
          text('browser_id', 36, nullable),
          text('organization_id', 36, nullable),
          text('group_id', 64, nullable),
          text('secret_hash', 64, nullable),
          { name: 'last_seen_day', type: 'integer', isNullable: true },
          { name: 'created_at', type: 'datetime', precision: 3 },
        ],
        indices: [
          {
            name: 'customer_identity_of_browser',
            columnNames: ['browser_id', 'organization_id', 'group_id'],
            isUnique: true,
          },
        ],
      },
    ];
    for (const table of tables) await runner.createTable(new Table(table), true);
    await runner.query('INSERT INTO registry_revision (id, revision) VALUES (1, 0)');
  }

  async down(runner: QueryRunner): Promise<void> {
    const names = [
      'customer_identity',
      'registry_revision',
      'agent',
      'resource_server',
      'client_application',
      'organization',
    ];
    for (const name of names) await runner.dropTable(name, true);
  }
}
