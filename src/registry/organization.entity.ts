import { Column, Entity, PrimaryColumn } from 'typeorm';

/** Settings of grant types by their names; each grant's own class says what may stand there. */
export type GrantSettings = Record<string, Record<string, unknown>>;

/** A tenant: its customers, agents and private applications are nobody else's. */
@Entity('organization')
export class Organization {
  @PrimaryColumn('varchar', { length: 36 })
  id: string;

  @Column('varchar', { length: 200 })
  name: string;

  /** The license property of specification 4.2: `true` lets all groups share one identity. */
  @Column('boolean', { name: 'chat_between_groups' })
  chatBetweenGroups: boolean;

  @Column('simple-json')
  grants: GrantSettings;

  /** Whether the registry file lists it; what the file lists, the file owns. @internal */
  @Column('boolean', { name: 'owned_by_file' })
  ownedByFile: boolean;
}
