import { Counter, Histogram } from 'prom-client';
import type { FinishedRequest } from '../request-context/finished-request.js';
import type { MetricsRegistry } from './metrics-registry.js';

/** From the duration of one SELECT to the longest time that a caller waits. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Counts requests and measures their durations. Label values never come from the caller. */
export class HttpMetrics {
  private readonly requests: Counter;
  private readonly durations: Histogram;

  constructor(metrics: MetricsRegistry) {
    this.requests = new Counter({
      name: 'http_requests_total',
      help: 'Requests with a response; status 499 if the client disconnected first.',
      labelNames: ['surface', 'method', 'route', 'grant', 'status'],
      registers: [metrics],
    });
    this.durations = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'From the headers of a request to the last byte of its answer.',
      labelNames: ['surface', 'route', 'grant'],
      buckets: BUCKETS_SECONDS,
      registers: [metrics],
    });
  }

  count({ surface, method, route, grant = '', status, milliseconds }: FinishedRequest): void {
    this.requests.inc({ surface, method, route, grant, status });
    this.durations.observe({ surface, route, grant }, milliseconds / 1000);
  }
}
