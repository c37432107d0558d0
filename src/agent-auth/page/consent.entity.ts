import { Column, Entity, PrimaryColumn } from 'typeorm';

/** What an agent has let an application do. It counts while the agent has the same organization and password. */
@Entity('consent')
export class Consent {
  @PrimaryColumn('varchar', { name: 'agent_id', length: 36 })
  agentId: string;

  @PrimaryColumn('varchar', { name: 'client_id', length: 128 })
  clientId: string;

  /** Scopes separated by spaces. */
  @Column('varchar', { length: 1000 })
  scope: string;

  /** `null`: release 1 has written the row, which does not count. */
  @Column('varchar', { name: 'organization_id', length: 36, nullable: true })
  organizationId: string | null;

  /** `null`: release 1 has written the row, which does not count. */
  @Column('varchar', { name: 'password_fingerprint', length: 16, nullable: true })
  passwordFingerprint: string | null;

  @Column('datetime', { name: 'given_at', precision: 3 })
  givenAt: Date;
}
