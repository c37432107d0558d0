import { Column, DeleteDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';
import type { AssertionKeys } from './assertion-keys.js';

/** The organizations whose events a resource server reads. */
export type ReadableEvents = 'all' | string[];

/** An internal service that may introspect tokens (RFC 7662). */
@Entity('resource_server')
@Index('resource_server_revision', ['revision', 'id'])
export class ResourceServer {
  @PrimaryColumn('varchar', { length: 128 })
  id!: string;

  /** SHA-256; empty, which is the hash of no secret, if the resource server has only keys. */
  @Column('varchar', { name: 'secret_hash', length: 64 })
  secretHash!: string;

  /** The keys of the assertions by which it authenticates; `null` if there are none. */
  @Column('simple-json', { name: 'assertion_keys', nullable: true })
  assertionKeys!: AssertionKeys | null;

  /** The audiences whose tokens it may introspect. Introspection reports any other token as inactive. */
  @Column('simple-json')
  audiences!: string[];

  /** `null` if it reads no events of customers (protocol §7.8). */
  @Column('simple-json', { nullable: true })
  events!: ReadableEvents | null;

  /** Whether a registry file brought the entry. */
  @Column('boolean', { name: 'from_file' })
  fromFile!: boolean;

  /** The number of the last change of the entry (registry-revision.ts). @internal */
  @Column('integer', { default: 0 })
  revision!: number;

  /** When the entry was deleted. TypeORM leaves out such a row unless `withDeleted` asks for it. @internal */
  @DeleteDateColumn({ name: 'deleted_at', type: 'datetime', precision: 3, nullable: true })
  deletedAt!: Date | null;
}
