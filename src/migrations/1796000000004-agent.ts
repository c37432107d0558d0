import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex, NULLABLE } from './schema.js';

/** What agents hold: their sessions, consents, and failed attempts to sign in. */
export class Agent1796000000004 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'agent_session',
      columns: [
        its.key('id', 64),
        its.text('kind', 16),
        its.text('agent_id', 255),
        its.text('organization_id', 36),
        its.text('client_id', 255),
        its.text('issuer', 255, NULLABLE),
        its.text('scope', 1000, NULLABLE),
        its.integer('epoch'),
        its.text('redirect_uri', 2000, NULLABLE),
        its.text('code_hash', 64, NULLABLE),
        its.text('code_challenge', 43, NULLABLE),
        its.text('redeemed_network', 64, NULLABLE),
        its.time('redeemed_at', NULLABLE),
        its.text('refresh_id_hash', 64, NULLABLE),
        its.text('current_hash', 64, NULLABLE),
        its.text('previous_hash', 64, NULLABLE),
        its.text('successor_nonce', 43, NULLABLE),
        its.time('created_at'),
        its.time('expires_at'),
      ],
      indices: [
        { name: 'agent_session_agent_id', columnNames: ['agent_id'] },
        { name: 'agent_session_code_hash', columnNames: ['code_hash'], isUnique: true },
        { name: 'agent_session_refresh_id_hash', columnNames: ['refresh_id_hash'], isUnique: true },
      ],
    },
    {
      name: 'consent',
      columns: [
        its.key('agent_id', 36),
        its.key('client_id', 128),
        its.text('scope', 1000),
        its.integer('generation'),
        its.time('given_at'),
      ],
    },
    {
      name: 'sign_in_failure',
      columns: [its.key('hash', 43), its.integer('failures'), its.time('expires_at')],
      indices: expiryIndex('sign_in_failure'),
    },
  ];
}
