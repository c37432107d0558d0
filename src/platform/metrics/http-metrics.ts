import { Counter, Histogram } from 'prom-client';
import type { FinishedRequest } from '../http/current-request.js';
import type { MetricsRegistry } from './metrics-registry.js';

/** Seconds: from what one SELECT takes to what a caller is ever kept waiting. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Counts requests and measures how long they took, by labels that only this service's own code can widen. */
export class HttpMetrics {
  private readonly requests: Counter<'surface' | 'method' | 'route' | 'grant' | 'status'>;
  private readonly duration: Histogram<'surface' | 'route' | 'grant'>;

  constructor(metrics: MetricsRegistry) {
    const registers = [metrics];
    this.requests = new Counter({
      name: 'http_requests_total',
      help: 'Requests answered; status 499 where the caller left first.',
      labelNames: ['surface', 'method', 'route', 'grant', 'status'],
      registers,
    });
    this.duration = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'From the headers of a request to the last byte of its answer.',
      labelNames: ['surface', 'route', 'grant'],
      buckets: BUCKETS,
      registers,
    });
  }

  count({ surface, method, route, grant = '', status, milliseconds }: FinishedRequest): void {
    this.requests.inc({ surface, method, route, grant, status });
    this.duration.observe({ surface, route, grant }, milliseconds / 1000);
  }
}
