import { Gauge } from 'prom-client';
import { type Count, type LabelledValues, labelledCounter } from '../platform/metrics/labelled-counter.js';
import type { MetricsRegistry } from '../platform/metrics/metrics-registry.js';
import type { RegistrySnapshot } from './registry-snapshot.js';

/** The metrics of the registry in memory. */
export class RegistryMetrics {
  /** When the registry was last known to be that of the database, by performance.now(). */
  renewedAt = performance.now();
  private readonly reads: LabelledValues<Count>;

  constructor(metrics: MetricsRegistry, snapshot: RegistrySnapshot) {
    const gauge = (name: string, help: string, value: () => number) =>
      new Gauge({
        name,
        help,
        registers: [metrics],
        collect() {
          this.set(value());
        },
      });
    gauge(
      'cas_registry_age_seconds',
      'Seconds since the process last compared its registry with the database.',
      () => (performance.now() - this.renewedAt) / 1000,
    );
    gauge('cas_registry_revision', 'The revision of the registry in memory.', () => snapshot.revision);
    gauge('cas_registry_clients', 'Clients in memory.', () => snapshot.clients.size);
    this.reads = labelledCounter(metrics, {
      name: 'cas_registry_reads_total',
      help: 'Reads of the registry after its revision had changed: only the changes, or the full registry.',
      labelNames: ['kind'],
    });
    for (const kind of ['changes', 'full'] as const) this.reads.at(kind).touch();
  }

  count(kind: 'changes' | 'full'): void {
    this.reads.at(kind).value.count++;
  }
}
