import { Column, Entity, PrimaryColumn } from 'typeorm';

/** An internal service that may introspect tokens (RFC 7662). */
@Entity('resource_server')
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
}
