import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex, NULLABLE } from './schema.js';

export class OneTimeCode1796000000004 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'one_time_code',
      columns: [
        its.key('hash', 64),
        its.text('client_id', 128),
        its.text('agent_id', 36),
        its.text('organization_id', 36),
        its.text('scope', 1000),
        its.text('redirect_uri', 2000),
        its.text('code_challenge', 43, NULLABLE),
        its.integer('generation'),
        its.time('issued_at'),
        its.time('expires_at'),
        its.time('consumed_at', NULLABLE),
        its.text('consumed_by', 36, NULLABLE),
        its.text('consumed_network', 64, NULLABLE),
      ],
      indices: expiryIndex('one_time_code'),
    },
  ];
}
