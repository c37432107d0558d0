import type { MigrationInterface, QueryRunner } from 'typeorm';
import { Columns, createTables, dropTables, expiryIndex, NULLABLE } from './schema.js';

/** The denylist, one-time codes, refresh families, and the consents of agents. */
export class AgentsTokens1795110000000 implements MigrationInterface {
  readonly name = 'AgentsTokens1795110000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    await createTables(runner, [
      {
        name: 'revocation',
        columns: [its.key('kind', 16), its.key('value', 255), its.time('issued_before'), its.time('expires_at')],
        indices: expiryIndex('revocation'),
      },
      {
        name: 'one_time_code',
        columns: [
          its.key('hash', 64),
          its.text('kind', 16),
          its.text('client_id', 128),
          its.text('subject', 36),
          its.text('organization_id', 36),
          its.text('scope', 1000, NULLABLE),
          its.text('redirect_uri', 2000, NULLABLE),
          its.text('code_challenge', 43, NULLABLE),
          its.json('made_with', NULLABLE),
          its.time('expires_at'),
          its.time('consumed_at', NULLABLE),
          its.text('consumed_by', 36, NULLABLE),
        ],
        indices: expiryIndex('one_time_code'),
      },
      {
        name: 'refresh_family',
        columns: [
          its.key('id', 36),
          its.text('client_id', 128),
          its.text('agent_id', 36),
          its.text('organization_id', 36),
          its.text('scope', 1000),
          its.text('current_hash', 64),
          its.text('previous_hash', 64, NULLABLE),
          its.time('begun_at'),
          its.time('rotated_at'),
          its.time('ended_at', NULLABLE),
          its.time('expires_at'),
        ],
        indices: expiryIndex('refresh_family'),
      },
      {
        name: 'refresh_token',
        columns: [its.key('hash', 64), its.text('family_id', 36), its.time('expires_at')],
        indices: expiryIndex('refresh_token'),
      },
      {
        name: 'consent',
        columns: [its.key('agent_id', 36), its.key('client_id', 128), its.text('scope', 1000), its.time('given_at')],
      },
    ]);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['consent', 'refresh_token', 'refresh_family', 'one_time_code', 'revocation']);
  }
}
