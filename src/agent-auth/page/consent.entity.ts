import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * Counts for one generation of the agent: it ends when the agent gets a new password, other scopes or another
 * organization. It also ends when the client is deleted.
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

  /** The generation of the agent that gave the consent. */
  @Column('integer')
  generation!: number;

  @Column('datetime', { name: 'given_at', precision: 3 })
  givenAt!: Date;
}
