import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The state of the revocation feed, in one row with the id 1. Each publication changes the row. */
@Entity('revocation_feed')
export class RevocationFeedState {
  @PrimaryColumn('integer')
  id!: number;

  /** The random id of the feed's history; 0 before the first process has read it. */
  @Column('integer', { default: 0 })
  history!: number;

  /** The highest position so far. Positions are milliseconds since 1970 or later, and never decrease. */
  @Column('bigint')
  position!: number;

  /** The process that published last. It publishes the next revocations too, as long as it lives. */
  @Column('varchar', { length: 36 })
  publisher!: string;

  /** Whether more revocations waited than one publication can have. */
  @Column('boolean', { name: 'has_backlog' })
  hasBacklog!: boolean;

  /** At least the number of entries in force. A publication adds its rows, and a count subtracts what has expired. */
  @Column('integer', { default: 0 })
  entries!: number;

  @Column('integer', { name: 'entries_count', default: 0 })
  entriesCount!: number;
}
