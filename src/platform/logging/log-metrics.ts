import { Counter } from 'prom-client';
import type { MetricsRegistry } from '../metrics/metrics-registry.js';
import type { Log } from './log.js';

/** Adds the counter of lost log lines. */
export function logMetrics(log: Log, metrics: MetricsRegistry): void {
  new Counter({
    name: 'cas_log_lines_lost_total',
    help: 'Lines that could not be written: the disk was full, or the reader too slow, for too long.',
    registers: [metrics],
    collect() {
      this.reset();
      this.inc(log.lost);
    },
  });
}
