import type { IncomingMessage } from 'node:http';
import type { Level, Logger } from 'pino';
import { type Counter, collectDefaultMetrics, Histogram } from 'prom-client';
import type { Configuration } from './configuration/configuration.js';
import { type Log, traceOf } from './logging/log.js';
import { MetricsRegistry } from './metrics.js';
import type { FinishedRequest, RequestContext } from './request-context/request-context.js';
import type { OtlpTracing } from './tracing/otlp-tracing.js';

/** From the duration of one SELECT to the longest time that a caller waits. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** Reports each request to the log, the metrics and the traces. */
export class Telemetry {
  readonly metrics = new MetricsRegistry();
  private readonly requests: Counter;
  private readonly durations: Histogram;
  /** Errors that no code has caught. */
  readonly extensionErrors: Counter<'package'>;

  private constructor(
    private readonly log: Log,
    private readonly tracing: OtlpTracing | undefined,
  ) {
    collectDefaultMetrics({ register: this.metrics });
    this.metrics.observedCounter(
      'cas_log_lines_lost_total',
      'Log lines that were discarded, because the buffer was full.',
      () => log.lost ?? 0,
    );
    this.requests = this.metrics.counter(
      'http_requests_total',
      'Requests with a response; status 499 if the client disconnected first.',
      ...['surface', 'method', 'route', 'grant', 'status'],
    );
    this.extensionErrors = this.metrics.counter(
      'cas_extension_errors_total',
      'Unhandled rejections and uncaught exceptions of extensions.',
      'package',
    );
    this.durations = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'From the headers of a request to the last byte of its response.',
      labelNames: ['surface', 'route', 'grant'],
      buckets: BUCKETS_SECONDS,
      registers: [this.metrics],
    });
  }

  /** Without OTEL_EXPORTER_OTLP_ENDPOINT, OpenTelemetry is not even loaded. */
  static async start(configuration: Configuration, log: Log): Promise<Telemetry> {
    const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: share } = configuration;
    if (endpoint === undefined) return new Telemetry(log, undefined);
    const { OtlpTracing } = await import('./tracing/otlp-tracing.js');
    return new Telemetry(log, new OtlpTracing(endpoint, share));
  }

  requestReceived(context: RequestContext, request: IncomingMessage): void {
    const isProbe = context.listener === 'management' && PROBE.test(request.url ?? '');
    if (this.tracing && !isProbe) context.trace = this.tracing.begin(request);
  }

  requestFinished(request: FinishedRequest): void {
    const { listener: surface, method, route, grant = '', status, milliseconds } = request;
    logRequest(this.log.logger, request);
    this.requests.inc({ surface, method, route, grant, status });
    this.durations.observe({ surface, route, grant }, milliseconds / 1000);
    request.trace?.end(request);
  }

  async stop(): Promise<void> {
    await this.tracing?.stop();
  }
}

/**
 * Routes that the cluster requests every few seconds. They are not traced, and successful requests are logged at level
 * debug.
 */
const PROBE = /^\/(health\/|metrics$)/;

/** The line has only what the service knows, never what the caller sent: no path, query, header, body or cookie. */
function logRequest(logger: Logger, request: FinishedRequest): void {
  const level = levelOf(request);
  if (!logger.isLevelEnabled(level)) return;
  const { id, listener: surface, method, route, status, milliseconds, grant, token, error, reason, cause } = request;
  const line = {
    request_id: id,
    caller_request_id: request.callerRequestId,
    surface,
    method,
    route,
    status,
    duration_ms: Math.round(milliseconds * 100) / 100,
    client_id: request.clientId,
    organization_id: request.organizationId,
    grant,
    jti: token?.jti,
    sub: token?.sub,
    token_client_id: token?.client_id,
    resource_server: request.resourceServerId,
    error,
    reason,
    cause: cause === undefined ? undefined : traceOf(cause, status === 500),
  };
  logger[level](line, 'request');
}

function levelOf({ status, route }: FinishedRequest): Level {
  if (status === 500) return 'error';
  if (status > 500) return 'warn';
  return PROBE.test(route) ? 'debug' : 'info';
}
