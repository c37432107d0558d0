import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A person of an organization's staff, who grants applications access at the authorization page. */
@Entity('agent')
@Index('agent_of_organization', ['organizationId', 'id'])
@Index('agent_email', ['email'], { unique: true })
export class Agent {
  @PrimaryColumn('varchar', { length: 36 })
  id!: string;

  /** As `canonicalEmail` returns it, so that one person is one agent. */
  @Column('varchar', { length: 254 })
  email!: string;

  @Column('varchar', { length: 200 })
  name!: string;

  /**
   * argon2id, with its parameters and salt (PHC string format). Empty for an agent without a password, whose sign-ins all
   * fail.
   */
  @Column('varchar', { name: 'password_hash', length: 255 })
  passwordHash!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  @Column('simple-json')
  scopes!: string[];

  /** Whether a registry file brought the entry. */
  @Column('boolean', { name: 'from_file' })
  fromFile!: boolean;

  /** The number of the last change of the entry (registry-revision.ts). @internal */
  @Column('integer', { default: 0 })
  revision!: number;

  /** It rises when the sessions of the agent end. */
  @Column('integer', { default: 0 })
  generation!: number;

  /** It rises when a session of the agent begins. */
  @Column('integer', { default: 0 })
  version!: number;
}
