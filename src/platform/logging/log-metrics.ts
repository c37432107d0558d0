import { Counter } from 'prom-client';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import type { Log } from './log.js';

/** Adds the counter of lost log lines. */
export function logMetrics(log: Log, metrics: MetricsRegistry): void {
  new Counter({
    name: 'cas_log_lines_lost_total',
    help: 'Log lines that were discarded, because the buffer was full.',
    registers: [metrics],
    collect() {
      this.reset();
      this.inc(log.lost);
    },
  });
}
