import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../../platform/database/entity-checks.js';

/** A code that a route has issued for a grant. */
@Expires()
@Entity('one_time_code')
export class OneTimeCode {
  /** SHA-256 of the grant and the code; with a recipient an HMAC of grant, organization, client and recipient. */
  @PrimaryColumn('varchar', { length: 64 })
  id!: string;

  /** An HMAC of the id and a short code; the id again of a long code, which the id is a hash of. */
  @Column('varchar', { name: 'code_hash', length: 64 })
  codeHash!: string;

  @Column('varchar', { name: 'grant_type', length: 255 })
  grantType!: string;

  /** The client that the code was issued for. */
  @Column('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  /** The customer that the code leads to; `null` if the grant decides. */
  @Index('one_time_code_entity_id')
  @Column('varchar', { name: 'entity_id', length: 36, nullable: true })
  entityId!: string | null;

  /** The generation of the customer, if the code ends with its sessions. */
  @Column('bigint', { nullable: true })
  generation!: number | null;

  /** The id that `proof()` of the caller gave, if the code ends with the caller's token. */
  @Column('varchar', { length: 36, nullable: true })
  proof!: string | null;

  /** What the route gave to `issue`, as JSON. */
  @Column('text')
  content!: string;

  /** The guesses until `guesses_until`, also at earlier codes of the recipient. */
  @Column('int')
  guesses!: number;

  @Column('datetime', { name: 'guesses_until', precision: 3 })
  guessesUntil!: Date;

  @Column('datetime', { name: 'used_at', precision: 3, nullable: true })
  usedAt!: Date | null;

  @Index('one_time_code_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}
