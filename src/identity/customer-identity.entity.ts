import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { CustomerCreator } from './customer.js';

/**
 * A customer, in one organization and group. Of an erased customer only `entityId`, `organizationId`, the generations,
 * `version` and `erasedAt` remain.
 */
@Entity('customer')
export class CustomerIdentity {
  /** A UUIDv7, by which callers identify the customer. */
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  /** Empty if the customer belongs to no group. */
  @Column('varchar', { name: 'group_id', length: 64, nullable: true })
  groupId!: string | null;

  @Column('varchar', { length: 16, nullable: true })
  creator!: CustomerCreator | null;

  /** Tokens, codes, refresh families and links from transfers with a lower generation have ended. It never decreases. */
  @Column('integer')
  generation!: number;

  /** All links with a lower generation have ended. It is a value that `generation` had. */
  @Column('integer', { name: 'link_generation' })
  linkGeneration!: number;

  /** Rises in each transaction that decides by rows of other tables about the customer. */
  @Column('integer')
  version!: number;

  /**
   * The last day on which the customer got a token in another way than by a link, in days since 1970 (UTC), or the day
   * on which a browser created the customer. Customers of agents have a day only if they stayed on a device.
   */
  @Column('integer', { name: 'last_token_day', nullable: true })
  lastTokenDay!: number | null;

  /** When the customer was erased or purged. */
  @Column('datetime', { name: 'erased_at', precision: 3, nullable: true })
  erasedAt!: Date | null;

  @Column('datetime', { name: 'created_at', precision: 3, nullable: true })
  createdAt!: Date | null;
}

/** An erased customer about which other tables may still have data. The row is deleted when they have none. */
@Entity('unfinished_erasure')
export class UnfinishedErasure {
  @PrimaryColumn('varchar', { name: 'entity_id', length: 36 })
  entityId!: string;
}
