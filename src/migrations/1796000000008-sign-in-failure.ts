import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex } from './schema.js';

export class SignInFailure1796000000008 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'sign_in_failure',
      columns: [its.key('hash', 43), its.integer('failures'), its.time('expires_at')],
      indices: expiryIndex('sign_in_failure'),
    },
  ];
}
