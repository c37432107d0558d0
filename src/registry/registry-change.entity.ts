import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';

/** The transaction that raises the revision writes the row: a process that sees the revision also sees its rows. */
@Expires()
@Entity('registry_change')
export class RegistryChange {
  @PrimaryColumn('integer')
  revision!: number;

  /** The `list` of the resource: `clients`. */
  @PrimaryColumn('varchar', { length: 64 })
  resource!: string;

  /** The key of the admin API. */
  @PrimaryColumn('varchar', { name: 'entry_key', length: 128 })
  entryKey!: string;

  @Index('registry_change_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}

/** A single row, which each process polls. It reads the changed entries only if the revision has changed. */
@Entity('registry_revision')
export class RegistryRevision {
  @PrimaryColumn('integer')
  id!: number;

  @Column('integer')
  revision!: number;
}
