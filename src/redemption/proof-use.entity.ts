import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Expires } from '../platform/database/entity-checks.js';

/** How often a proof, or an assertion of a client, was used. */
@Expires()
@Entity('proof_use')
export class ProofUse {
  /** SHA-256 of the grant, the organization and the key of the proof; or of the client and the `jti`. */
  @PrimaryColumn('varchar', { length: 64 })
  hash!: string;

  @Column('int')
  uses!: number;

  /** 30 s after the end of the proof; `null` if the proof never ends. */
  @Index('proof_use_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3, nullable: true })
  expiresAt!: Date | null;
}
