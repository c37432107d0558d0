import { Injectable } from '@nestjs/common';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { Database } from '../platform/database/database.js';
import {
  type EntityRow,
  insertIgnoreStatement,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';

export type RecordedName = 'revocation_feed_history' | PassName;

type PassName = 'idle_customers_purged_day' | 'idle_sessions_purged_day';

@Entity('recorded_value')
export class RecordedValue {
  @PrimaryColumn('varchar', { length: 64 })
  name!: RecordedName;

  @Column('integer')
  value!: number;
}

const FIND_ALL = selectStatement<[], EntityRow<RecordedValue, 'name' | 'value'>>({
  columns: ['name', 'value'],
  from: 'recorded_value',
  batch: true,
});

const INSERT = insertIgnoreStatement({ into: RecordedValue, columns: ['name', 'value'] });

const RAISE = writeStatement<[value: number, name: RecordedName, higherThan: number]>(
  'UPDATE recorded_value SET value = ? WHERE name = ? AND value < ?',
);

/** The days of the last passes of the purge. */
@Injectable()
export class RecordedValues {
  constructor(private readonly database: Database) {}

  /** The last day on which a pass of the purge was finished, in days since 1970 (UTC); 0 if there is none. */
  async purgeDay(pass: PassName): Promise<number> {
    return (await this.values()).get(pass) ?? 0;
  }

  recordPurgeDay(pass: PassName, day: number): Promise<void> {
    return this.raise(pass, day);
  }

  private async values(): Promise<Map<RecordedName, number>> {
    const rows = await this.database.select(FIND_ALL, []);
    return new Map(rows.map(({ name, value }) => [name, value]));
  }

  /** Of two processes the later day is recorded. */
  private async raise(name: RecordedName, value: number): Promise<void> {
    const known = (await this.values()).get(name);
    if (known !== undefined && known >= value) return;
    if (known === undefined && (await this.database.execute(INSERT, [name, value])) > 0) return;
    await this.database.execute(RAISE, [value, name, value]);
  }
}
