import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * A single row, which each process reads every 2 s. The first statement of each change locks it until the end of the
 * transaction, so that the numbers are committed in their order.
 */
@Entity('registry_revision')
export class RegistryRevision {
  @PrimaryColumn('integer')
  id!: number;

  /** The number of changes so far. The entries that a change writes get its number. */
  @Column('integer')
  revision!: number;

  /** A process with an older revision reads all entries, because rows of deleted entries are gone. */
  @Column('integer', { name: 'complete_from' })
  completeFrom!: number;

  /** Of the last registry file with passwords (operator/registry/file/listed-secrets.ts). */
  @Column('varchar', { name: 'passwords_hash', length: 64 })
  passwordsHash!: string;
}
