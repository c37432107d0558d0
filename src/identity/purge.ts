import {
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { CustomerPurge, type CustomersToPurge } from '../customer/customer-purge.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { earlierTime } from '../platform/database/earlier-time.js';
import { expiringTables } from '../platform/database/entity-checks.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { finishDay, finishedDay } from '../platform/database/lease.js';
import { LeasedSteps } from '../platform/database/leased-steps.js';
import { writeStatement } from '../platform/database/statement.js';
import { portionsOf } from '../platform/database/value-list.js';
import { DeletedEntries } from '../registry/deleted-entries.js';
import { SessionPurge } from '../session/session-purge.js';
import { CustomerDataParticipants } from './customer-data-participants.js';
import { CustomerErasure } from './customer-erasure.js';

const ROWS_PER_DELETE = 1_000;
/** Within the time of so many, the purge holds its lease. */
const CUSTOMERS_PER_STEP = 100;
/** Mean time between two purges of one process. */
const PURGE_INTERVAL_MS = 3_600_000;
/** Covers requests under way at midnight, and clocks that differ. */
const MIDNIGHT_MARGIN_MS = 300_000;

export type Purged = Record<string, number>;

interface Pass {
  now: Date;
  /** In days since 1970 (UTC). */
  today: number;
  /** Only then the purge reads whole tables. */
  isFirstOfDay: boolean;
  /** Whether nothing is left for another purge of this day. */
  isFinished: boolean;
}

/**
 * Deletes expired rows, sessions, browsers that lead nowhere and idle customers in small batches that do not delay
 * requests. One process purges at a time.
 */
@Injectable()
export class Purge implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(Purge.name);
  private readonly leased: LeasedSteps;
  private timer: NodeJS.Timeout | undefined;
  private isStopping = false;
  private tables: string[] = [];

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly database: Database,
    private readonly sessions: SessionPurge,
    private readonly customers: CustomerPurge,
    private readonly participants: CustomerDataParticipants,
    private readonly erasure: CustomerErasure,
    private readonly deletedEntries: DeletedEntries,
    private readonly clock: Clock,
  ) {
    this.leased = new LeasedSteps(database, 'purge');
  }

  /** @throws Error that names an entity that cannot be purged; the application then does not start */
  onModuleInit(): void {
    this.tables = expiringTables(this.dataSource);
  }

  onApplicationBootstrap(): void {
    this.scheduleNext();
  }

  onApplicationShutdown(): void {
    this.isStopping = true;
    this.leased.stop();
    clearTimeout(this.timer);
  }

  /**
   * Purges all tables, and goes on with the others if one fails. Returns `undefined` if another process is purging.
   *
   * @throws Error that names the tables that failed, and counts the rows that were deleted in the others
   */
  async run(): Promise<Purged | undefined> {
    if (!(await this.leased.acquire())) return undefined;
    const failed: string[] = [];
    try {
      const now = await earlierTime(this.database, this.clock);
      const today = dayOf(now.getTime() - MIDNIGHT_MARGIN_MS);
      const lastDay = await finishedDay(this.database.manager, this.leased.lease);
      const pass: Pass = { now, today, isFirstOfDay: lastDay !== today, isFinished: true };
      const purged: Purged = {};
      for (const [table, steps] of this.allSteps(pass)) {
        try {
          const { rows, isFinished } = await this.leased.run(steps);
          purged[table] = (purged[table] ?? 0) + rows;
          if (isFinished) continue;
          pass.isFinished = false;
          break; // the next purge continues
        } catch (error) {
          this.logger.warn(`the table ${table} cannot be purged: ${(error as Error).message}`);
          failed.push(table);
          if (!(await this.leased.acquire())) break; // throws if the database is unreachable
        }
      }
      if (failed.length > 0)
        throw new Error(`tables that cannot be purged: ${failed.join(', ')}; purged: ${JSON.stringify(purged)}`);
      if (pass.isFirstOfDay && pass.isFinished) await finishDay(this.database.manager, this.leased.lease, today);
      return purged;
    } finally {
      await this.leased.release();
    }
  }

  /**
   * Sessions of customers come first: agents' sessions stay while these refer to them, and customers are idle without.
   */
  private *allSteps(pass: Pass): Generator<[table: string, steps: AsyncIterable<number>]> {
    const { now } = pass;
    for (const table of this.tables) yield [table, this.deleteExpired(table, now)];
    yield ['registry', this.deleteEntries(now)];
    yield ['session', this.deleteSessions(pass)];
    yield ['agent_session', this.sessions.deleteAgentSessions(ROWS_PER_DELETE, now)];
    yield ['customer', this.deleteCustomers(pass)];
  }

  private async *deleteSessions({ now, isFirstOfDay }: Pass): AsyncGenerator<number, void> {
    if (isFirstOfDay) yield* this.sessions.applyShorterSettings(ROWS_PER_DELETE, now);
    yield* this.sessions.deleteInSteps(ROWS_PER_DELETE, now);
    if (isFirstOfDay) yield* this.sessions.deleteUnusedBrowsers(ROWS_PER_DELETE);
  }

  /**
   * Purges the customers that a browser created and that have no session, `idle_days` after their last use (protocol
   * §5.9), and finishes erasures that were interrupted. Customers that agents created, and those of users, remain. It
   * reads the table by its primary key and needs no other index.
   */
  private async *deleteCustomers(pass: Pass): AsyncGenerator<number, void> {
    if (!pass.isFirstOfDay) return;
    let after: string | undefined = '';
    let failedCount = 0;
    while (after !== undefined) {
      const page: CustomersToPurge = await this.customers.find(after, ROWS_PER_DELETE, pass.today);
      yield 0;
      for (const portion of portionsOf(page.erased, CUSTOMERS_PER_STEP)) {
        failedCount += await this.erasure.finishErasures(portion);
        yield 0;
      }
      for (const portion of portionsOf(page.idle, CUSTOMERS_PER_STEP)) {
        const marked = await this.markIdle(portion, pass);
        failedCount += await this.erasure.finishErasures(marked);
        yield marked.length;
      }
      after = page.next;
    }
    if (failedCount > 0) pass.isFinished = false;
  }

  /**
   * If a request for a token of one of these customers came first, it has noted the day, and the customer remains. If
   * it comes later, it finds no customer.
   */
  private async markIdle(ids: string[], { now, today }: Pass): Promise<string[]> {
    const retained = new Set(await this.participants.mustRetain(ids));
    const candidates = ids.filter((id) => !retained.has(id));
    return candidates.length === 0 ? [] : this.customers.markIdle(candidates, now, today);
  }

  /** The id of a deleted client is free when nothing is left that a new client with this id could use. */
  private async *deleteEntries(now: Date): AsyncGenerator<number, void> {
    const clients = await this.deletedEntries.clients(now);
    const clientIds = new Set(clients.map(({ clientId }) => clientId));
    if (clientIds.size > 0) yield* this.sessions.endOfClients(clientIds, ROWS_PER_DELETE, now);
    yield* this.deletedEntries.deleteInSteps(clients, now);
  }

  private async *deleteExpired(table: string, now: Date): AsyncGenerator<number, void> {
    const deleteOldest = writeStatement<[now: Date]>(({ deleteInOrder }) =>
      deleteInOrder(table, 'expires_at < ?', 'expires_at', ROWS_PER_DELETE),
    );
    let deleted = ROWS_PER_DELETE;
    while (deleted === ROWS_PER_DELETE) {
      // not within the time of one statement, because it may wait for the locks of a publication
      deleted = await this.database.transaction((manager) => writeIn(manager, deleteOldest, [now]));
      yield deleted;
    }
  }

  /** Each purge begins about an hour after the end of the one before. */
  private scheduleNext(): void {
    if (this.isStopping) return;
    // The random part spreads the purges of pods that start together.
    const delayMs = PURGE_INTERVAL_MS * (0.75 + Math.random() / 2);
    this.timer = setTimeout(() => void this.runInBackground().then(() => this.scheduleNext()), delayMs);
    this.timer.unref();
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
