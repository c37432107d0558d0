import { Logger } from '@nestjs/common';
import { type Counter, Gauge } from 'prom-client';
import type { MetricsRegistry } from '../metrics.js';
import type { SqlClient } from './sql-client.js';

/** Counts statements by their outcome: `done`, `repeated`, `unavailable` or `failed`. */
export function databaseMetrics(metrics: MetricsRegistry, client: SqlClient): Counter<'outcome'> {
  const statements = metrics.counter('cas_database_statements_total', 'Statements of requests, by outcome.', 'outcome');
  // with 0 from the start, because Prometheus sees no increase when a counter first appears with a higher value
  for (const outcome of ['done', 'repeated', 'unavailable', 'failed']) statements.inc({ outcome }, 0);
  const usage = () => client.usage?.();
  new Gauge({
    name: 'cas_database_connections',
    help: 'Database connections of this process, by state.',
    labelNames: ['state'],
    registers: [metrics],
    collect() {
      const { inUse = 0, idle = 0 } = usage() ?? {};
      this.set({ state: 'in_use' }, inUse);
      this.set({ state: 'idle' }, idle);
    },
  });
  metrics.gauge(
    'cas_database_connections_limit',
    'Maximum number of database connections of this process (DB_POOL_SIZE).',
    () => usage()?.limit ?? 0,
  );
  metrics.gauge('cas_database_waiting', 'Statements that wait for a connection.', () => usage()?.waiting ?? 0);
  metrics.gauge(
    'cas_database_seconds_without_write',
    'Seconds since the first of the writes to SQLite that have failed or wait since the last successful one, else 0.',
    async () => (await client.secondsWithoutWrite?.()) ?? 0,
  );
  metrics.observedCounter(
    'cas_database_rejected_total',
    'Statements rejected, because too many statements waited already.',
    () => usage()?.rejected ?? 0,
  );
  return statements;
}

/** Statements must fail for this long without any success before the log calls it an outage. */
const MIN_OUTAGE_MS = 1_000;

/** A single statement that times out is no outage. */
export class OutageLog {
  private readonly logger = new Logger('Database');
  private firstFailureAt: number | undefined;
  private isLogged = false;

  /** For how long statements have failed without any success. */
  get seconds(): number {
    return this.firstFailureAt === undefined ? 0 : (performance.now() - this.firstFailureAt) / 1000;
  }

  failed(error: unknown): void {
    this.firstFailureAt ??= performance.now();
    if (this.isLogged || performance.now() - this.firstFailureAt < MIN_OUTAGE_MS) return;
    this.isLogged = true;
    this.logger.warn(`the database is unavailable, and requests that need it get 503: ${(error as Error).message}`);
  }

  succeeded(): void {
    if (this.firstFailureAt === undefined) return;
    if (this.isLogged) this.logger.log(`the database is available again after ${Math.round(this.seconds)} s`);
    this.firstFailureAt = undefined;
    this.isLogged = false;
  }
}
