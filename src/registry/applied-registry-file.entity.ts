import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import type { PasswordGroups } from './file/password-groups.js';

/** A registry file that was applied. The row with the highest sequence is the file in force. */
@Entity('applied_registry_file')
@Index('applied_registry_file_sequence', ['sequence'], { unique: true })
export class AppliedRegistryFile {
  /** The hash of the file's text and of the secret files that the text names. */
  @PrimaryColumn('varchar', { name: 'content_hash', length: 64 })
  contentHash!: string;

  @Column('varchar', { name: 'text_hash', length: 64 })
  textHash!: string;

  @Column('integer')
  sequence!: number;

  /** The highest `revision` of this file and of all files that were applied before. */
  @Column('integer', { name: 'highest_revision', nullable: true })
  highestRevision!: number | null;

  @Column('datetime', { name: 'applied_at', precision: 3 })
  appliedAt!: Date;

  /** The hash of the version of the service, and of the names of the grants, with which the file was checked. */
  @Column('varchar', { name: 'grants_hash', length: 64 })
  grantsHash!: string;

  @Column('simple-json', { name: 'password_groups', nullable: true })
  passwordGroups!: PasswordGroups | null;

  /** A revision at which the registry had the content of this file; `null` if the file must be parsed. */
  @Column('integer', { name: 'registry_revision', nullable: true })
  registryRevision!: number | null;
}
