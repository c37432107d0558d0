import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables } from './schema.js';

export class Consent1796000000006 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
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
  ];
}
