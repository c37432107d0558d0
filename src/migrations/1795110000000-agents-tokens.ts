import { type MigrationInterface, type QueryRunner, Table, type TableColumnOptions } from 'typeorm';

/** The denylist, one-time codes, chains of refresh tokens, and what agents have consented to. */
export class AgentsTokens1795110000000 implements MigrationInterface {
  readonly name = 'AgentsTokens1795110000000';

  async up(runner: QueryRunner): Promise<void> {
    const exact: Partial<TableColumnOptions> =
      runner.connection.options.type === 'better-sqlite3' ? {} : { charset: 'utf8mb4', collation: 'utf8mb4_bin' };
    const text = (name: string, length: number, more: Partial<TableColumnOptions> = {}): TableColumnOptions => ({
      name,
      type: 'varchar',
      length: String(length),
      ...exact,
      ...more,
    });
    const time = (name: string, more: Partial<TableColumnOptions> = {}): TableColumnOptions => ({
      name,
      type: 'datetime',
      precision: 3,
      ...more,
    });
    const key = { isPrimary: true };
    const nullable = { isNullable: true };
    const expiryIndex = (table: string) => [{ name: `${table}_expires_at`, columnNames: ['expires_at'] }];

    const tables: ConstructorParameters<typeof Table>[0][] = [
      {
        name: 'revocation',
        columns: [text('kind', 16, key), text('value', 255, key), time('issued_before'), time('expires_at')],
        indices: expiryIndex('revocation'),
      },
      {
        name: 'one_time_code',
        columns: [
          text('hash', 64, key),
          text('kind', 16),
          text('client_id', 128),
          text('subject', 36),
          text('organization_id', 36),
          text('scope', 1000, nullable),
          text('redirect_uri', 2000, nullable),
          text('code_challenge', 43, nullable),
          { name: 'made_with', type: 'text', isNullable: true },
          time('expires_at'),
          time('consumed_at', nullable),
          text('consumed_by', 36, nullable),
        ],
        indices: expiryIndex('one_time_code'),
      },
      {
        name: 'refresh_family',
        columns: [
          text('id', 36, key),
          text('client_id', 128),
          text('agent_id', 36),
          text('organization_id', 36),
          text('scope', 1000),
          text('current_hash', 64),
          text('previous_hash', 64, nullable),
          time('rotated_at'),
          time('ended_at', nullable),
          time('expires_at'),
        ],
        indices: expiryIndex('refresh_family'),
      },
      {
        name: 'refresh_token',
        columns: [text('hash', 64, key), text('family_id', 36), time('expires_at')],
        indices: expiryIndex('refresh_token'),
      },
      {
        name: 'consent',
        columns: [text('agent_id', 36, key), text('client_id', 128, key), text('scope', 1000), time('given_at')],
      },
    ];
    for (const table of tables) await runner.createTable(new Table(table), true);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of ['consent', 'refresh_token', 'refresh_family', 'one_time_code', 'revocation']) {
      await runner.dropTable(name, true);
    }
  }
}
