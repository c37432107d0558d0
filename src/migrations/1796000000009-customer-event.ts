import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex, NULLABLE } from './schema.js';

export class CustomerEvent1796000000009 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'customer_event',
      columns: [
        its.key('id', 36),
        its.text('kind', 32),
        its.text('organization_id', 36),
        its.text('customer_id', 36),
        its.text('into_id', 36, NULLABLE),
        its.time('created_at'),
        its.time('expires_at'),
        its.bigInteger('position', NULLABLE),
      ],
      indices: [
        ...expiryIndex('customer_event'),
        { name: 'customer_event_customer_id', columnNames: ['customer_id'] },
        { name: 'customer_event_into_id', columnNames: ['into_id'] },
        { name: 'customer_event_position', columnNames: ['position'] },
      ],
    },
  ];
}
