import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The names of the recorded values. The values outlive the processes that use the database. */
export type RecordedName =
  | 'longest_access_token_life'
  | 'longest_customer_token_life'
  | 'longest_refresh_token_life'
  | 'revocation_feed_history'
  | RecordedDay;

/** The names whose values are days since 1970 (UTC). */
export type RecordedDay = 'idle_customers_purged_day';

/** A number that the service records about its database. */
@Entity('recorded_value')
export class RecordedValue {
  @PrimaryColumn('varchar', { length: 64 })
  name!: RecordedName;

  @Column('integer')
  value!: number;
}
