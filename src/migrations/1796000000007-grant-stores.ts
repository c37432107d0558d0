import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex, NULLABLE } from './schema.js';

/** The tables of `UseCounter` and `OneTimeCodes`. */
export class GrantStores1796000000007 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'proof_use',
      columns: [its.key('hash', 64), its.integer('uses'), its.time('expires_at', NULLABLE)],
      indices: expiryIndex('proof_use'),
    },
    {
      name: 'one_time_code',
      columns: [
        its.key('id', 64),
        its.text('code_hash', 64),
        its.text('grant_type', 255),
        its.text('client_id', 128),
        its.text('organization_id', 36),
        its.text('entity_id', 36, NULLABLE),
        its.bigInteger('generation', NULLABLE),
        its.text('proof', 36, NULLABLE),
        its.json('content'),
        its.integer('guesses'),
        its.time('guesses_until'),
        its.time('used_at', NULLABLE),
        its.time('expires_at'),
      ],
      indices: [{ name: 'one_time_code_entity_id', columnNames: ['entity_id'] }, ...expiryIndex('one_time_code')],
    },
  ];
}
