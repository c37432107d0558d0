import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, NULLABLE } from './schema.js';

export class OrganizationUser1795000000003 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'organization_user',
      columns: [
        its.key('entity_id', 36),
        its.text('organization_id', 36),
        its.text('user_hash', 64, NULLABLE),
        its.text('customer_id', 36),
        its.text('linked_by', 36),
        its.time('linked_at'),
      ],
      indices: [
        {
          name: 'organization_user_of_organization',
          columnNames: ['organization_id', 'user_hash'],
          isUnique: true,
        },
        { name: 'organization_user_customer_id', columnNames: ['customer_id'] },
      ],
    },
  ];
}
