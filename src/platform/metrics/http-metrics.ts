import type { Aggregator, Metric, MetricValueWithName } from 'prom-client';
import type { FinishedRequest } from '../request-context/finished-request.js';
import { type Count, LabelledValues, labelledCounter, labelsByName } from './labelled-counter.js';
import type { MetricsRegistry } from './metrics-registry.js';

/** Counts requests and measures their durations. Label values never come from the caller. */
export class HttpMetrics {
  private readonly requests: LabelledValues<Count>;
  private readonly durations: DurationHistogram;

  constructor(metrics: MetricsRegistry) {
    this.requests = labelledCounter(metrics, {
      name: 'http_requests_total',
      help: 'Requests with a response; status 499 if the client disconnected first.',
      labelNames: ['surface', 'method', 'route', 'grant', 'status'],
    });
    const help = 'From the headers of a request to the last byte of its answer.';
    const labelNames = ['surface', 'route', 'grant'];
    this.durations = new DurationHistogram(metrics, 'http_request_duration_seconds', help, labelNames);
  }

  count({ surface, method, route, grant = '', status, milliseconds }: FinishedRequest): void {
    this.requests.at(surface).at(method).at(route).at(grant).at(String(status)).value.count++;
    this.durations.values
      .at(surface)
      .at(route)
      .at(grant)
      .value.add(milliseconds / 1000);
  }
}

/** From the duration of one SELECT to the longest time that a caller waits. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const BUCKET_NAMES = [...BUCKETS_SECONDS.map(String), '+Inf'];

/** The durations that were observed with one set of labels. */
class Durations {
  readonly counts = new Array<number>(BUCKET_NAMES.length).fill(0);
  sumSeconds = 0;

  add(seconds: number): void {
    let bucket = 0;
    while (bucket < BUCKETS_SECONDS.length && seconds > (BUCKETS_SECONDS[bucket] as number)) bucket++;
    this.counts[bucket] = (this.counts[bucket] as number) + 1;
    this.sumSeconds += seconds;
  }
}

/** A histogram that prom-client exports, and that is filled without prom-client (see LabelledValues). */
class DurationHistogram {
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

  /** prom-client calls this at each scrape. */
  async get(): Promise<object> {
    const { name, help, aggregator } = this;
    const values = [...this.values.entries()].flatMap(([labels, durations]) => this.samples(labels, durations));
    return { name, help, type: this.type, aggregator, values };
  }

  reset(): void {}

  private samples(values: string[], { counts, sumSeconds }: Durations): MetricValueWithName<string>[] {
    const { name } = this;
    const labels = labelsByName(this.labelNames, values);
    let count = 0;
    const buckets = counts.map((inBucket, index) => {
      count += inBucket;
      return { metricName: `${name}_bucket`, labels: { le: BUCKET_NAMES[index] as string, ...labels }, value: count };
    });
    const total = { metricName: `${name}_count`, labels, value: count };
    return [...buckets, { metricName: `${name}_sum`, labels, value: sumSeconds }, total];
  }
}
