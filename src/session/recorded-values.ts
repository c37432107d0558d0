import { Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { Configuration, MAX_ACCESS_TOKEN_TTL_SECONDS } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { DatabaseStart } from '../platform/database/database-start.js';
import {
  type EntityRow,
  insertIgnoreStatement,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';

export type RecordedName = 'longest_refresh_token_life' | 'revocation_feed_history' | PassName;

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

/** Covers requests under way and clocks that differ. */
const RETENTION_MARGIN_SECONDS = 120;

/** The time for which an entry of `ended` is retained. No access token has a longer lifetime. */
export const ENTRY_SECONDS = MAX_ACCESS_TOKEN_TTL_SECONDS + RETENTION_MARGIN_SECONDS;

/** The longest lifetime that refresh tokens ever had on this database, and the days of the last passes of the purge. */
@Injectable()
export class RecordedValues implements OnModuleInit {
  constructor(
    private readonly database: Database,
    private readonly configuration: Configuration,
    private readonly adapterHost: HttpAdapterHost,
    private readonly start: DatabaseStart,
  ) {}

  onModuleInit(): Promise<void> {
    return this.start.run(() => this.recordLifetimes());
  }

  /** Called at the start, and for a restored database, whose backup may be older than a lifetime of this process. */
  async recordLifetimes(): Promise<void> {
    // A command has no HTTP server and issues no refresh tokens. Most commands do not read the variable.
    if (!this.adapterHost.httpAdapter) return;
    await this.raise('longest_refresh_token_life', this.configuration.REFRESH_TOKEN_TTL);
  }

  /** Seconds for which the ending of a refresh family of an agent, or of a client, must be retained. */
  async familySeconds(): Promise<number> {
    const refresh = (await this.values()).get('longest_refresh_token_life') ?? 0;
    return Math.max(refresh + RETENTION_MARGIN_SECONDS, ENTRY_SECONDS);
  }

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

  /** Of two processes with different lifetimes the longer one is recorded, regardless of the order of their starts. */
  private async raise(name: RecordedName, value: number): Promise<void> {
    const known = (await this.values()).get(name);
    if (known !== undefined && known >= value) return; // a start writes only what has changed
    if (known === undefined && (await this.database.executeIdempotent(INSERT, [name, value])) > 0) return;
    await this.database.executeIdempotent(RAISE, [value, name, value]);
  }
}
