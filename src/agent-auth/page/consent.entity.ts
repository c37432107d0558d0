import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * The scopes that an agent has granted to a client. A consent is valid while the agent's organization and password are
 * the same.
 */
@Entity('consent')
export class Consent {
  @PrimaryColumn('varchar', { name: 'agent_id', length: 36 })
  agentId!: string;

  @PrimaryColumn('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  /** Scopes separated by spaces. */
  @Column('varchar', { length: 1000 })
  scope!: string;

  /** The agent's organization when it consented. */
  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  /** Of the agent's password when it consented. */
  @Column('varchar', { name: 'password_fingerprint', length: 16 })
  passwordFingerprint!: string;

  @Column('datetime', { name: 'given_at', precision: 3 })
  givenAt!: Date;
}
