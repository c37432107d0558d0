import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex, NULLABLE } from './schema.js';

export class RefreshToken1796000000005 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'refresh_family',
      columns: [
        its.key('id', 36),
        its.text('family_hash', 64),
        its.text('client_id', 128),
        its.text('agent_id', 36),
        its.text('organization_id', 36),
        its.text('scope', 1000),
        its.integer('generation'),
        its.time('begun_at'),
        its.text('current_hash', 64),
        its.text('previous_hash', 64, NULLABLE),
        its.text('successor_nonce', 43, NULLABLE),
        its.time('rotated_at'),
        its.text('rotated_network', 64, NULLABLE),
        its.time('counted_since'),
        its.integer('rotations'),
        its.time('ended_at', NULLABLE),
        its.time('expires_at'),
      ],
      indices: [
        { name: 'refresh_family_family_hash', columnNames: ['family_hash'], isUnique: true },
        ...expiryIndex('refresh_family'),
      ],
    },
  ];
}
