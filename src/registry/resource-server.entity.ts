import { Column, Entity, PrimaryColumn } from 'typeorm';

/** An internal service that may introspect tokens (RFC 7662). */
@Entity('resource_server')
export class ResourceServer {
  @PrimaryColumn('varchar', { length: 128 })
  id!: string;

  /** SHA-256 of the secret. */
  @Column('varchar', { name: 'secret_hash', length: 64 })
  secretHash!: string;

  /** The audiences whose tokens it may introspect. Introspection reports any other token as inactive. */
  @Column('simple-json')
  audiences!: string[];

  /** Whether the registry file lists the entry. Such an entry can only be changed through the file. */
  @Column('boolean', { name: 'owned_by_file' })
  ownedByFile!: boolean;
}
