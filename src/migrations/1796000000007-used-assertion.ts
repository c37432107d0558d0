import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex } from './schema.js';

export class UsedAssertion1796000000007 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'used_assertion',
      columns: [its.key('hash', 64), its.time('expires_at')],
      indices: expiryIndex('used_assertion'),
    },
  ];
}
