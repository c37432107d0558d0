import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';

/**
 * An entry that was created, changed or deleted. The transaction that raises the registry's revision writes the row, so
 * that a process which sees the revision also sees its rows.
 */
@Expires()
@Entity('registry_change')
export class RegistryChange {
  /** The revision of the registry after the change. */
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

/**
 * A single row that counts the changes of the registry. A process polls the number, and reads the changed entries
 * (`registry_change`) only if it has changed.
 */
@Entity('registry_revision')
export class RegistryRevision {
  @PrimaryColumn('integer')
  id!: number;

  @Column('integer')
  revision!: number;
}
