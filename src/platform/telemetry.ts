import type { IncomingMessage } from 'node:http';
import { Counter, collectDefaultMetrics, Histogram } from 'prom-client';
import type { Configuration } from './configuration/configuration.js';
import { type Log, RequestLog } from './logging/log.js';
import { MetricsRegistry } from './metrics.js';
import type { FinishedRequest, RequestContext } from './request-context/request-context.js';
import type { Tracing } from './tracing/tracing.js';

/** Reports each request to the log, the metrics and, if tracing is configured, as a trace. */
export class Telemetry {
  readonly metrics = new MetricsRegistry();
  private readonly requestLog: RequestLog;
  private readonly httpMetrics: HttpMetrics;

  private constructor(
    log: Log,
    private readonly tracing: Tracing | undefined,
  ) {
    collectDefaultMetrics({ register: this.metrics });
    logMetrics(log, this.metrics);
    this.requestLog = new RequestLog(log.logger);
    this.httpMetrics = new HttpMetrics(this.metrics);
  }

  static async start(configuration: Configuration, log: Log): Promise<Telemetry> {
    return new Telemetry(log, await startTracing(configuration));
  }

  requestReceived(context: RequestContext, request: IncomingMessage): void {
    if (this.tracing) context.trace = this.tracing.begin(request);
  }

  requestFinished(request: FinishedRequest): void {
    this.requestLog.write(request);
    this.httpMetrics.count(request);
    request.trace?.end(request);
  }

  async stop(): Promise<void> {
    await this.tracing?.stop();
  }
}

/** Adds the counter of lost log lines. */
function logMetrics(log: Log, metrics: MetricsRegistry): void {
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

/** `undefined` without OTEL_EXPORTER_OTLP_ENDPOINT. OpenTelemetry is then not even loaded. */
async function startTracing({ OTEL_EXPORTER_OTLP_ENDPOINT }: Configuration): Promise<Tracing | undefined> {
  if (OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  const { OtlpTracing } = await import('./tracing/otlp-tracing.js');
  return new OtlpTracing(OTEL_EXPORTER_OTLP_ENDPOINT);
}

/** From the duration of one SELECT to the longest time that a caller waits. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Counts requests and measures their durations. Label values never come from the caller. */
class HttpMetrics {
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
