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
import { IdleBrowsers } from '../identity/idle-browsers.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { expiringTables } from '../platform/database/expires.js';
import { acquireLease, type Lease, releaseLease } from '../platform/database/lease.js';
import { writeStatement } from '../platform/database/statement.js';

const ROWS_PER_DELETE = 1_000;
/** Rest after a DELETE, in which requests find the rows unlocked. */
const PAUSE_MS = 10;
/** Time between two purges of a process that finds the lease free. */
const PERIOD_MS = 3_600_000;
const LEASE_DURATION_MS = 60_000;

/** How many rows a purge has deleted, by table. */
export type Purged = Record<string, number>;

/** Deletes what has expired, in batches that no request notices; of all processes one at a time. */
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
    private readonly clock: Clock,
  ) {}

  /** @throws Error that tells which entity cannot be purged as it asks; the application does not start then */
  onModuleInit(): void {
    this.tables = expiringTables(this.dataSource);
  }

  onApplicationBootstrap(): void {
    // pods that start together do not ask together
    const period = PERIOD_MS * (0.75 + Math.random() / 2);
    this.timer = setInterval(() => void this.runQuietly(), period);
    this.timer.unref();
  }

  onApplicationShutdown(): void {
    this.stopping = true;
    clearInterval(this.timer);
  }

  /** Purges everything; `undefined` when another process is at it. */
  async run(): Promise<Purged | undefined> {
    if (!(await this.hold())) return undefined;
    try {
      const purged: Purged = {};
      for (const table of this.tables) purged[table] = await this.sumOf(this.deleteExpired(table));
      purged.customer_identity = await this.sumOf(this.idle.deleteInSteps(ROWS_PER_DELETE));
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

  /** How many rows the steps delete, until they end, the process stops or another process has the lease. */
  private async sumOf(steps: AsyncIterable<number>): Promise<number> {
    let sum = 0;
    for await (const deleted of steps) {
      sum += deleted;
      if (this.stopping || !(await this.hold())) break;
      await sleep(PAUSE_MS);
    }
    return sum;
  }

  private hold(): Promise<boolean> {
    return acquireLease(this.dataSource, this.lease, this.clock.now(), LEASE_DURATION_MS);
  }

  private async runQuietly(): Promise<void> {
    try {
      const purged = await this.run();
      if (purged) this.logger.log(`purged ${JSON.stringify(purged)}`);
    } catch (error) {
      this.logger.warn(`the purge stopped, and goes on with the next one: ${(error as Error).message}`);
    }
  }
}
