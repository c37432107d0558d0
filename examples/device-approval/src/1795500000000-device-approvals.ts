import { Columns, createTables, dropTables, expiryIndex, NULLABLE } from '@customer-authorization/service/grant';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The new devices that wait for an approval. */
export class DeviceApprovals1795500000000 implements MigrationInterface {
  readonly name = 'DeviceApprovals1795500000000';

  async up(runner: QueryRunner): Promise<void> {
    const columns = new Columns(runner);
    await createTables(runner, [
      {
        name: 'device_approval',
        columns: [
          columns.key('device_code_hash', 64),
          columns.text('user_code_hash', 64),
          columns.text('client_id', 128),
          columns.text('organization_id', 36),
          columns.text('entity_id', 36, NULLABLE),
          columns.text('proof', 36, NULLABLE),
          columns.flag('is_approved'),
          columns.time('polled_at', NULLABLE),
          columns.time('expires_at'),
        ],
        indices: [
          { name: 'device_approval_user_code_hash', columnNames: ['user_code_hash'], isUnique: true },
          { name: 'device_approval_entity_id', columnNames: ['entity_id'] },
          ...expiryIndex('device_approval'),
        ],
      },
    ]);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, ['device_approval']);
  }
}
