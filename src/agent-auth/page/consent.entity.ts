import { Column, Entity, PrimaryColumn } from 'typeorm';

/** What an agent has let a public application do, so that it is asked once. */
@Entity('consent')
export class Consent {
  @PrimaryColumn('varchar', { name: 'agent_id', length: 36 })
  agentId: string;

  @PrimaryColumn('varchar', { name: 'client_id', length: 128 })
  clientId: string;

  /** Scopes separated by spaces. */
  @Column('varchar', { length: 1000 })
  scope: string;

  @Column('datetime', { name: 'given_at', precision: 3 })
  givenAt: Date;
}
