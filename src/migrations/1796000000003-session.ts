import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex, NULLABLE } from './schema.js';

export class Session1796000000003 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'browser',
      columns: [its.key('browser_id', 36), its.text('secret_hash', 64), its.integer('version')],
    },
    {
      name: 'session',
      columns: [
        its.key('id', 64),
        its.text('kind', 16),
        its.text('customer_id', 36),
        its.text('browser_id', 36, NULLABLE),
        its.text('organization_id', 36, NULLABLE),
        its.text('group_id', 64, NULLABLE),
        its.text('parent_id', 64, NULLABLE),
        its.integer('parent_epoch', NULLABLE),
        its.integer('depth'),
        its.integer('epoch'),
        its.text('client_id', 128, NULLABLE),
        its.text('agent_session_id', 64, NULLABLE),
        its.integer('agent_epoch', NULLABLE),
        its.text('code_hash', 64, NULLABLE),
        its.text('code_challenge', 43, NULLABLE),
        its.text('redeemed_network', 64, NULLABLE),
        its.time('redeemed_at', NULLABLE),
        its.time('redeemable_until', NULLABLE),
        its.text('refresh_id_hash', 64, NULLABLE),
        its.text('current_hash', 64, NULLABLE),
        its.text('previous_hash', 64, NULLABLE),
        its.text('successor_nonce', 43, NULLABLE),
        its.time('used_at', NULLABLE),
        its.integer('seen_day', NULLABLE),
        its.integer('signed_in_day', NULLABLE),
        its.time('created_at'),
        its.time('expires_at'),
      ],
      indices: [
        { name: 'session_of_browser', columnNames: ['browser_id', 'organization_id', 'group_id'], isUnique: true },
        { name: 'session_customer_id', columnNames: ['customer_id'] },
        { name: 'session_agent_session_id', columnNames: ['agent_session_id'] },
        { name: 'session_code_hash', columnNames: ['code_hash'], isUnique: true },
        { name: 'session_refresh_id_hash', columnNames: ['refresh_id_hash'], isUnique: true },
        ...expiryIndex('session'),
      ],
    },
  ];
}
