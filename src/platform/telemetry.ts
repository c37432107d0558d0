import type { IncomingMessage } from 'node:http';
import { Counter, collectDefaultMetrics } from 'prom-client';
import type { Configuration } from './configuration/configuration.js';
import { type Log, RequestLog } from './logging/log.js';
import { HttpMetrics } from './metrics/http-metrics.js';
import { MetricsRegistry } from './metrics/metrics-registry.js';
import type { FinishedRequest } from './request-context/finished-request.js';
import type { RequestContext } from './request-context/request-context.js';
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
