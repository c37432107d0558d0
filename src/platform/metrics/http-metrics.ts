import type { FinishedRequest } from '../request-context/finished-request.js';
import { DurationHistogram } from './duration-histogram.js';
import { type Count, type LabelledValues, labelledCounter } from './labelled-counter.js';
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
