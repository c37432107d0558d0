import { Expires } from '@customer-authorization/service/grant';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A new device that waits for an approval. The table contains no code in plain text. */
@Expires()
@Entity('device_approval')
export class DeviceApproval {
  /** SHA-256 of the code that the new device polls with. */
  @PrimaryColumn('varchar', { name: 'device_code_hash', length: 64 })
  deviceCodeHash!: string;

  /**
   * SHA-256 of the code that the new device shows. Who reads the table can find such a short code, but it gives no access:
   * only a customer can approve, and the device then acts for that customer. A short code that leads to a customer needs a
   * hash with a key, as that of `OneTimeCodes`.
   */
  @Index('device_approval_user_code_hash', { unique: true })
  @Column('varchar', { name: 'user_code_hash', length: 64 })
  userCodeHash!: string;

  /** The client of the new device. Only this client may poll. */
  @Column('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  /** The customer that has decided; `null` before. */
  @Index('device_approval_entity_id')
  @Column('varchar', { name: 'entity_id', length: 36, nullable: true })
  entityId!: string | null;

  /** The id of `proof()` of the customer that has approved, with whose token the new device's token ends. */
  @Column('varchar', { length: 36, nullable: true })
  proof!: string | null;

  @Column('boolean', { name: 'is_approved' })
  isApproved!: boolean;

  @Column('datetime', { name: 'polled_at', precision: 3, nullable: true })
  polledAt!: Date | null;

  @Index('device_approval_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}
