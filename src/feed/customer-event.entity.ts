import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';

/** What became of a customer (protocol §7.8). */
export const EVENT_KINDS = [
  'customer.linked',
  'customer.became_user',
  'customer.erased',
  'customer.sessions_ended',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** An event for the services that store data of customers. The transaction of the change writes it. */
@Expires()
@Entity('customer_event')
export class CustomerEvent {
  @PrimaryColumn('varchar', { length: 36 })
  id!: string;

  @Column('varchar', { length: 32 })
  kind!: EventKind;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  @Index('customer_event_customer_id')
  @Column('varchar', { name: 'customer_id', length: 36 })
  customerId!: string;

  /** Only of `customer.linked`: the user's customer. */
  @Index('customer_event_into_id')
  @Column('varchar', { name: 'into_id', length: 36, nullable: true })
  intoId!: string | null;

  @Column('datetime', { name: 'created_at', precision: 3 })
  createdAt!: Date;

  @Index('customer_event_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;

  /** The position in the feed; `null` before the publication. Revocations have positions of the same history. */
  @Index('customer_event_position')
  @Column('bigint', { nullable: true })
  position!: number | null;
}
