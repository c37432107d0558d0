import type { Aggregator, Metric, MetricValueWithName } from 'prom-client';
import { LabelledValues, named } from './labelled-counter.js';
import type { MetricsRegistry } from './metrics-registry.js';

/** Seconds: from what one SELECT takes to what a caller is ever kept waiting. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const NAMES = [...BUCKETS.map(String), '+Inf'];

/** What was observed with one set of labels. */
class Durations {
  readonly counts = new Array<number>(NAMES.length).fill(0);
  /** Seconds. */
  sum = 0;

  add(seconds: number): void {
    let bucket = 0;
    while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sum += seconds;
  }
}

/** A histogram that prom-client shows, and that is filled without it (see LabelledValues). */
export class DurationHistogram {
  readonly type = 'histogram';
  readonly aggregator: Aggregator = 'sum';
  readonly values = new LabelledValues(() => new Durations());

  constructor(
    metrics: MetricsRegistry,
    readonly name: string,
    readonly help: string,
    private readonly labelNames: string[],
  ) {
    metrics.registerMetric(this as unknown as Metric);
  }

  /** Asked by prom-client at each scrape. */
  async get(): Promise<object> {
    const { name, help, aggregator } = this;
    const values = [...this.values.entries()].flatMap(([labels, durations]) => this.shown(labels, durations));
    return { name, help, type: this.type, aggregator, values };
  }

  reset(): void {}

  private shown(values: string[], { counts, sum }: Durations): MetricValueWithName<string>[] {
    const { name } = this;
    const labels = named(this.labelNames, values);
    let count = 0;
    const buckets = counts.map((own, index) => {
      count += own;
      return { metricName: `${name}_bucket`, labels: { le: NAMES[index] as string, ...labels }, value: count };
    });
    const total = { metricName: `${name}_count`, labels, value: count };
    return [...buckets, { metricName: `${name}_sum`, labels, value: sum }, total];
  }
}
