import { Injectable, type OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Column, Entity, type EntityManager, PrimaryColumn } from 'typeorm';
import { Configuration, MAX_ACCESS_TOKEN_TTL_SECONDS } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { DatabaseStart } from '../platform/database/database-start.js';
import { selectIn } from '../platform/database/in-transaction.js';
import {
  type EntityRow,
  insertIgnoreStatement,
  selectStatement,
  writeStatement,
} from '../platform/database/statement.js';

export type RecordedName =
  | 'longest_access_token_life'
  | 'longest_customer_token_life'
  | 'longest_refresh_token_life'
  | 'revocation_feed_history'
  | PassName;

type PassName = 'idle_customers_purged_day' | 'idle_browsers_purged_day';

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

/** The longest lifetimes that were ever configured on this database, and the days of the last passes of the purge. */
@Injectable()
export class RecordedValues implements OnModuleInit {
  private longestCustomerTokenLife = 0;

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
    // The maximum, because a client may get any lifetime up to this maximum at any moment (`customer_token_ttl`). A
    // revocation must also outlive transfer tokens, which have the same maximum.
    await this.raise('longest_access_token_life', MAX_ACCESS_TOKEN_TTL_SECONDS);
    // A command has no HTTP server and issues none of these tokens. Most commands do not read these variables.
    if (!this.adapterHost.httpAdapter) return;
    const { CUSTOMER_TOKEN_TTL, REFRESH_TOKEN_TTL } = this.configuration;
    await this.raise('longest_refresh_token_life', REFRESH_TOKEN_TTL);
    await this.recordCustomerTokenLife(Math.max(CUSTOMER_TOKEN_TTL, this.longestCustomerTokenLife));
  }

  hasCustomerTokenLife(seconds: number): boolean {
    return seconds <= this.longestCustomerTokenLife;
  }

  /**
   * Records a lifetime of customers' tokens. The caller must await this method before it reads the generation of the
   * first token with this lifetime, because a feed entry that is published meanwhile must outlive the token.
   */
  async recordCustomerTokenLife(seconds: number): Promise<void> {
    await this.raise('longest_customer_token_life', seconds);
    this.longestCustomerTokenLife = Math.max(this.longestCustomerTokenLife, seconds);
  }

  /** Seconds for which the revocation of an access token, or of a refresh family or client, must be retained. */
  async retentionSeconds(manager?: EntityManager): Promise<{ token: number; family: number }> {
    const recorded = await this.values(manager);
    const access = recorded.get('longest_access_token_life') ?? 0;
    const refresh = recorded.get('longest_refresh_token_life') ?? 0;
    return { token: access + RETENTION_MARGIN_SECONDS, family: Math.max(refresh, access) + RETENTION_MARGIN_SECONDS };
  }

  /** Seconds for which an entry of the feed can end tokens: an entry of customers' tokens, and any other entry. */
  async entrySeconds(): Promise<{ customer: number; other: number }> {
    const recorded = await this.values();
    const life = Math.max(recorded.get('longest_customer_token_life') ?? 0, this.longestCustomerTokenLife);
    const other = recorded.get('longest_access_token_life') ?? 0;
    return { customer: life + RETENTION_MARGIN_SECONDS, other: other + RETENTION_MARGIN_SECONDS };
  }

  /** The last day on which a pass of the purge was finished, in days since 1970 (UTC); 0 if there is none. */
  async purgeDay(pass: PassName): Promise<number> {
    return (await this.values()).get(pass) ?? 0;
  }

  recordPurgeDay(pass: PassName, day: number): Promise<void> {
    return this.raise(pass, day);
  }

  private async values(manager?: EntityManager): Promise<Map<RecordedName, number>> {
    const rows = await (manager ? selectIn(manager, FIND_ALL, []) : this.database.select(FIND_ALL, []));
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
