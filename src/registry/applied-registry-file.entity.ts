import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A registry file that was applied. The row with the highest sequence is the file in force. */
@Entity('applied_registry_file')
@Index('applied_registry_file_sequence', ['sequence'], { unique: true })
export class AppliedRegistryFile {
  /** The hash of the file's text and of the secret files that the text names. */
  @PrimaryColumn('varchar', { name: 'content_hash', length: 64 })
  contentHash: string;

  @Column('varchar', { name: 'text_hash', length: 64 })
  textHash: string;

  @Column('integer')
  sequence: number;

  /** The highest `revision` of this file and of all files that were applied before. */
  @Column('integer', { name: 'highest_revision', nullable: true })
  highestRevision: number | null;

  @Column('datetime', { name: 'applied_at', precision: 3 })
  appliedAt: Date;
}
