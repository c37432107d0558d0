import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { EndedLinks } from '../identity/ended-links.js';
import { IdleBrowsers } from '../identity/idle-browsers.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { expiringTables } from '../platform/database/expires.js';
import { acquireLease, type Lease, releaseLease } from '../platform/database/lease.js';
import { writeStatement } from '../platform/database/statement.js';

const ROWS_PER_DELETE = 1_000;
/** Pause between two deletes, during which the rows are unlocked for requests. */
const PAUSE_BETWEEN_DELETES_MS = 10;
/** Mean time between two purges of one process. */
const PURGE_INTERVAL_MS = 3_600_000;
const LEASE_DURATION_MS = 60_000;

/** The number of rows that a purge deleted, by table. */
export type Purged = Record<string, number>;

/** Deletes expired rows and idle browsers in small batches that do not delay requests. One process purges at a time. */
@Injectable()
export class Purge implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(Purge.name);
  private readonly lease: Lease = { name: 'purge', owner: randomUUID() };
  private timer: NodeJS.Timeout | undefined;
  private stopping = false;
  private tables: string[] = [];

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly database: Database,
    private readonly idle: IdleBrowsers,
    private readonly endedLinks: EndedLinks,
    private readonly clock: Clock,
  ) {}

  /** @throws Error that names an entity that cannot be purged; the application then does not start */
  onModuleInit(): void {
    this.tables = expiringTables(this.dataSource);
  }

  onApplicationBootstrap(): void {
    // The random part spreads the purges of pods that start together.
    const intervalMs = PURGE_INTERVAL_MS * (0.75 + Math.random() / 2);
    this.timer = setInterval(() => void this.runInBackground(), intervalMs);
    this.timer.unref();
  }

  onApplicationShutdown(): void {
    this.stopping = true;
    clearInterval(this.timer);
  }

  /** Purges all tables. Returns `undefined` if another process is purging. */
  async run(): Promise<Purged | undefined> {
    if (!(await this.holdLease())) return undefined;
    try {
      const purged: Purged = {};
      // before the revocations; if this stops, the revocations are left to the next purge
      purged.browser_link = await this.runSteps(this.endedLinks.deleteInSteps(ROWS_PER_DELETE));
      if (this.stopping || !(await this.holdLease())) return purged;
      for (const table of this.tables) purged[table] = await this.runSteps(this.deleteExpired(table));
      purged.customer_identity = await this.runSteps(this.idle.deleteInSteps(ROWS_PER_DELETE));
      return purged;
    } finally {
      await releaseLease(this.dataSource, this.lease);
    }
  }

  private async *deleteExpired(table: string): AsyncGenerator<number, void> {
    const deleteOldest = writeStatement<[now: Date]>(({ deleteInOrder }) =>
      deleteInOrder(table, 'expires_at < ?', 'expires_at', ROWS_PER_DELETE),
    );
    const now = new Date(this.clock.now());
    let deleted = ROWS_PER_DELETE;
    while (deleted === ROWS_PER_DELETE) {
      deleted = await this.database.execute(deleteOldest, [now]);
      yield deleted;
    }
  }

  /**
   * Runs steps until they end, the process stops or another process has the lease. Returns the number of deleted rows.
   */
  private async runSteps(steps: AsyncIterable<number>): Promise<number> {
    let total = 0;
    for await (const deleted of steps) {
      total += deleted;
      if (this.stopping || !(await this.holdLease())) break;
      await sleep(PAUSE_BETWEEN_DELETES_MS);
    }
    return total;
  }

  private holdLease(): Promise<boolean> {
    return acquireLease(this.dataSource, this.lease, this.clock.now(), LEASE_DURATION_MS);
  }

  private async runInBackground(): Promise<void> {
    try {
      const purged = await this.run();
      if (purged) this.logger.log(`purged ${JSON.stringify(purged)}`);
    } catch (error) {
      this.logger.warn(`the purge failed; the next purge continues: ${(error as Error).message}`);
    }
  }
}
