import { Column, DeleteDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';

/** Settings of grants by their names. The class that a grant declares validates its settings. */
export type GrantSettings = Record<string, Record<string, unknown>>;

/** The public clients that an organization admits: all of them, or those with these client ids. */
export type AdmittedPublicClients = 'all' | string[];

/** The highest `idle_days`, and the default. */
export const MAX_IDLE_DAYS = 731;

/** The column `idle_days` of an organization, for statements on other tables. */
export const idleDaysOf = (organizationId: string) =>
  `(SELECT idle_days FROM organization WHERE organization.id = ${organizationId})`;

/** A tenant. Its customers, agents and private applications belong to no other organization. */
@Entity('organization')
@Index('organization_revision', ['revision', 'id'])
export class Organization {
  @PrimaryColumn('varchar', { length: 36 })
  id!: string;

  @Column('varchar', { length: 200 })
  name!: string;

  /** The license property of protocol §8.2: `true` lets all groups share one identity. */
  @Column('boolean', { name: 'chat_between_groups' })
  chatBetweenGroups!: boolean;

  @Column('simple-json')
  grants!: GrantSettings;

  /** `null` admits none, as `[]` does. */
  @Column('simple-json', { name: 'public_clients', nullable: true })
  publicClients!: AdmittedPublicClients | null;

  /** The days after which an unused browser no longer leads to a customer; `null` is `MAX_IDLE_DAYS`. @internal */
  @Column('integer', { name: 'idle_days', nullable: true })
  idleDays!: number | null;

  /** Whether a registry file brought the entry. @internal */
  @Column('boolean', { name: 'from_file' })
  fromFile!: boolean;

  /** Whether requests are refused. Nothing is deleted, and it can be taken back. @internal */
  @Column('boolean')
  suspended!: boolean;

  /** Tokens that were issued up to this time ended with a suspension. @internal */
  @Column('datetime', { name: 'issued_before', precision: 3, nullable: true })
  issuedBefore!: Date | null;

  /** When the erasure of the organization begins, or began; `null` if it is not being off-boarded. @internal */
  @Column('datetime', { name: 'offboarding_at', precision: 3, nullable: true })
  offboardingAt!: Date | null;

  /** The number of the last change of the entry (registry-revision.ts). @internal */
  @Column('integer', { default: 0 })
  revision!: number;

  /** When the entry was deleted. TypeORM leaves out such a row unless `withDeleted` asks for it. @internal */
  @DeleteDateColumn({ name: 'deleted_at', type: 'datetime', precision: 3, nullable: true })
  deletedAt!: Date | null;

  /**
   * Whether a client may get and pass on tokens of this organization's customers: a private client of this
   * organization, or a public client that the organization admits. The authorization page asks the agent instead
   * (`ClientApplication.usableIn`).
   */
  admits({ clientId, organizationId }: { clientId: string; organizationId: string | null }): boolean {
    if (organizationId !== null) return organizationId === this.id;
    return this.publicClients === 'all' || (this.publicClients?.includes(clientId) ?? false);
  }
}
