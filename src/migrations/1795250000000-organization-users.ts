import type { MigrationInterface, QueryRunner } from 'typeorm';
import { Columns, createTables, dropTables, expiryIndex, NULLABLE } from './schema.js';

/** Maps users of organizations to customers, and stores the assertions that were used. */
export class OrganizationUsers1795250000000 implements MigrationInterface {
  readonly name = 'OrganizationUsers1795250000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    await createTables(runner, [
      {
        name: 'organization_user',
        columns: [
          its.key('entity_id', 36),
          its.text('organization_id', 36),
          its.text('user_hash', 64, NULLABLE),
          its.text('customer_id', 36),
          its.text('linked_by', 36),
          its.time('linked_at'),
          its.time('settled_at', NULLABLE),
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
      {
        name: 'used_assertion',
        columns: [its.key('hash', 64), its.text('used_by', 36), its.time('expires_at')],
        indices: expiryIndex('used_assertion'),
      },
    ]);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['used_assertion', 'organization_user']);
  }
}
