import { Column, Entity, PrimaryColumn } from 'typeorm';

/** What must be remembered about a database beyond the life of the processes that use it. */
export type RecordedName = 'longest_access_token_life' | 'longest_refresh_token_life' | 'complete_release';

/** A number that the service records about its database. */
@Entity('recorded_value')
export class RecordedValue {
  @PrimaryColumn('varchar', { length: 64 })
  name: RecordedName;

  @Column('integer')
  value: number;
}
