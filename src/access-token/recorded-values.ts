import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Configuration, MAX_ACCESS_TOKEN_TTL_SECONDS } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { insertIgnoreStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { type RecordedDay, type RecordedName, RecordedValue } from './recorded-value.entity.js';

const FIND_ALL = selectStatement<[], EntityRow<RecordedValue, 'name' | 'value'>>({
  columns: ['name', 'value'],
  from: 'recorded_value',
  batch: true,
});

const INSERT = insertIgnoreStatement({ into: RecordedValue, columns: ['name', 'value'] });

const RAISE = writeStatement<[value: number, name: RecordedName, higherThan: number]>(
  'UPDATE recorded_value SET value = ? WHERE name = ? AND value < ?',
);

/** The default lifetime of refresh tokens in release 1, which recorded no lifetimes. */
const RELEASE_1_REFRESH_TOKEN_TTL_SECONDS = 2_592_000;
/** Covers requests under way and clocks that differ. */
const RETENTION_MARGIN_SECONDS = 120;

/**
 * The longest lifetimes that were ever configured on this database, and whether its upgrade to release 2 is complete.
 */
@Injectable()
export class RecordedValues implements OnModuleInit {
  private longestCustomerTokenLife = 0;

  constructor(
    private readonly database: Database,
    private readonly configuration: Configuration,
  ) {}

  onModuleInit(): Promise<void> {
    return this.recordLifetimes();
  }

  /** Called at the start, and for a restored database, whose backup may be older than a lifetime of this process. */
  async recordLifetimes(): Promise<void> {
    const { CUSTOMER_TOKEN_TTL, REFRESH_TOKEN_TTL } = this.configuration;
    // The maximum, because a client may get any lifetime up to it at any moment (`customer_token_ttl`). Transfer tokens,
    // which a revocation must outlive too, have the same maximum.
    await this.raise('longest_access_token_life', MAX_ACCESS_TOKEN_TTL_SECONDS);
    await this.raise('longest_refresh_token_life', Math.max(REFRESH_TOKEN_TTL, RELEASE_1_REFRESH_TOKEN_TTL_SECONDS));
    await this.recordCustomerTokenLife(Math.max(CUSTOMER_TOKEN_TTL, this.longestCustomerTokenLife));
  }

  /** Whether this process has recorded a lifetime of customers' tokens, or a longer one. */
  hasCustomerTokenLife(seconds: number): boolean {
    return seconds <= this.longestCustomerTokenLife;
  }

  /**
   * Records a lifetime of customers' tokens. The caller must wait for this before it reads the generation of the first
   * token with this lifetime: an entry of the feed that is published meanwhile must outlive the token.
   */
  async recordCustomerTokenLife(seconds: number): Promise<void> {
    await this.raise('longest_customer_token_life', seconds);
    this.longestCustomerTokenLife = Math.max(this.longestCustomerTokenLife, seconds);
  }

  /** Seconds for which the revocation of one access token, and that of a refresh family or client, must be retained. */
  async retentionSeconds(): Promise<{ token: number; family: number }> {
    const recorded = await this.read();
    const access = recorded.get('longest_access_token_life') ?? 0;
    const refresh = recorded.get('longest_refresh_token_life') ?? 0;
    return { token: access + RETENTION_MARGIN_SECONDS, family: Math.max(refresh, access) + RETENTION_MARGIN_SECONDS };
  }

  /** Seconds for which an entry of the feed can end tokens: an entry of customers' tokens, and any other entry. */
  async entrySeconds(): Promise<{ customer: number; other: number }> {
    const recorded = await this.read();
    const life = Math.max(recorded.get('longest_customer_token_life') ?? 0, this.longestCustomerTokenLife);
    const other = recorded.get('longest_access_token_life') ?? 0;
    return { customer: life + RETENTION_MARGIN_SECONDS, other: other + RETENTION_MARGIN_SECONDS };
  }

  /**
   * Whether no process of release 1 uses this database any more, and the day on which the operator completed the
   * upgrade; 0 if there is none.
   */
  async upgrade(): Promise<{ isComplete: boolean; completeDay: number }> {
    const recorded = await this.read();
    return {
      isComplete: (recorded.get('complete_release') ?? 1) >= 2,
      completeDay: recorded.get('complete_day') ?? 0,
    };
  }

  /** The last day on which the purge of idle customers was finished; 0 if there is none. */
  async purgeDay(): Promise<number> {
    return (await this.read()).get('idle_customers_purged_day') ?? 0;
  }

  recordDay(name: RecordedDay, day: number): Promise<void> {
    return this.raise(name, day);
  }

  private async read(): Promise<Map<RecordedName, number>> {
    const rows = await this.database.select(FIND_ALL, []);
    return new Map(rows.map(({ name, value }) => [name, value]));
  }

  /** Of two processes with different lifetimes the longer one is recorded, regardless of the order of their starts. */
  private async raise(name: RecordedName, value: number): Promise<void> {
    if ((await this.database.executeIdempotent(INSERT, [name, value])) > 0) return;
    await this.database.executeIdempotent(RAISE, [value, name, value]);
  }
}
