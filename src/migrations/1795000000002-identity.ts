import type { TableOptions } from 'typeorm';
import { type Columns, CreateTables, NULLABLE } from './schema.js';

export class Identity1795000000002 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'customer',
      columns: [
        its.key('entity_id', 36),
        its.text('organization_id', 36),
        its.text('group_id', 64, NULLABLE),
        its.text('creator', 16, NULLABLE),
        its.integer('generation'),
        its.integer('link_generation'),
        its.integer('version'),
        its.integer('last_token_day', NULLABLE),
        its.time('erased_at', NULLABLE),
        its.time('created_at', NULLABLE),
      ],
    },
    {
      name: 'browser',
      columns: [its.key('browser_id', 36), its.text('secret_hash', 64), its.integer('version')],
    },
    {
      name: 'browser_customer',
      columns: [
        its.key('browser_id', 36),
        its.key('entity_id', 36),
        its.text('organization_id', 36, NULLABLE),
        its.text('group_id', 64, NULLABLE),
        its.text('origin', 16),
        its.text('began_in', 36),
        its.integer('generation'),
        its.integer('seen_day'),
        its.integer('signed_in_until', NULLABLE),
        its.text('root', 128, NULLABLE),
        its.json('lineage', NULLABLE),
        its.text('agent_id', 36, NULLABLE),
        its.integer('agent_generation', NULLABLE),
      ],
      indices: [
        {
          name: 'browser_customer_of_scope',
          columnNames: ['browser_id', 'organization_id', 'group_id'],
          isUnique: true,
        },
        {
          name: 'browser_customer_of_customer',
          columnNames: ['entity_id', 'organization_id', 'origin', 'began_in'],
        },
      ],
    },
    {
      name: 'link_ancestor',
      columns: [its.key('entity_id', 36), its.key('browser_id', 36), its.key('ancestor_id', 128)],
      indices: [{ name: 'link_ancestor_ancestor_id', columnNames: ['ancestor_id'] }],
    },
    { name: 'unfinished_erasure', columns: [its.key('entity_id', 36)] },
  ];
}
