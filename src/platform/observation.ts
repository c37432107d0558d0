import type { IncomingMessage } from 'node:http';
import { collectDefaultMetrics } from 'prom-client';
import type { Configuration } from './configuration/configuration.js';
import type { FinishedRequest, RequestRecord } from './http/current-request.js';
import type { Log } from './logging/log.js';
import { logMetrics } from './logging/log-metrics.js';
import { RequestLog } from './logging/request-log.js';
import { HttpMetrics } from './metrics/http-metrics.js';
import { MetricsRegistry } from './metrics/metrics-registry.js';
import { startTracing } from './tracing/start-tracing.js';
import type { Tracing } from './tracing/tracing.js';

/** What a service tells of itself: each request in the log, in the metrics and, where that is wanted, as a trace. */
export class Observation {
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

  static async start(configuration: Configuration, log: Log): Promise<Observation> {
    return new Observation(log, await startTracing(configuration));
  }

  begun(record: RequestRecord, request: IncomingMessage): void {
    if (this.tracing) record.trace = this.tracing.begin(request);
  }

  finished(request: FinishedRequest): void {
    this.requestLog.write(request);
    this.httpMetrics.count(request);
    request.trace?.end(request);
  }

  async stop(): Promise<void> {
    await this.tracing?.stop();
  }
}
