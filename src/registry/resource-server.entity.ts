import { Column, Entity, PrimaryColumn } from 'typeorm';

/** An internal service that may ask whether a token is good (RFC 7662). */
@Entity('resource_server')
export class ResourceServer {
  @PrimaryColumn('varchar', { length: 128 })
  id: string;

  /** SHA-256 of its secret. */
  @Column('varchar', { name: 'secret_hash', length: 64 })
  secretHash: string;

  /** The audiences whose tokens it may ask about; any other token is inactive to it. */
  @Column('simple-json')
  audiences: string[];

  /** Whether the registry file lists it; what the file lists, the file owns. */
  @Column('boolean', { name: 'owned_by_file' })
  ownedByFile: boolean;
}
