import { Column, DeleteDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';

/** An internal service that may introspect tokens (RFC 7662). */
@Entity('resource_server')
@Index('resource_server_revision', ['revision', 'id'])
export class ResourceServer {
  @PrimaryColumn('varchar', { length: 128 })
  id!: string;

  @Column('varchar', { name: 'secret_hash', length: 64 })
  secretHash!: string;

  /** The audiences whose tokens it may introspect. Introspection reports any other token as inactive. */
  @Column('simple-json')
  audiences!: string[];

  /** Only the registry file can then change the entry. */
  @Column('boolean', { name: 'owned_by_file' })
  ownedByFile!: boolean;

  /** The number of the last change of the entry (registry-revision.ts). @internal */
  @Column('integer', { default: 0 })
  revision!: number;

  /** When the entry was deleted. TypeORM leaves out such a row unless `withDeleted` asks for it. @internal */
  @DeleteDateColumn({ name: 'deleted_at', type: 'datetime', precision: 3, nullable: true })
  deletedAt!: Date | null;
}
