import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, NULLABLE } from './schema.js';

export class Customer1796000000002 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'customer',
      columns: [
        its.key('entity_id', 36),
        its.text('organization_id', 36),
        its.text('group_id', 64),
        its.text('creator', 16),
        its.bigInteger('generation'),
        its.integer('version'),
        its.flag('has_user'),
        its.text('linked_to', 36, NULLABLE),
        its.integer('seen_day'),
        its.time('erased_at', NULLABLE),
        its.time('created_at'),
      ],
      indices: [
        { name: 'customer_linked_to', columnNames: ['linked_to'] },
        { name: 'customer_of_organization', columnNames: ['organization_id', 'entity_id'] },
      ],
    },
    {
      name: 'customer_key',
      columns: [its.key('hash', 64), its.text('entity_id', 36), its.text('namespace', 64)],
      indices: [{ name: 'customer_key_entity_id', columnNames: ['entity_id'] }],
    },
  ];
}
