import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { type FinishedRequest, type RequestTrace, TRACEPARENT } from '../request-context/request-context.js';
import { VERSION } from '../version.js';

const NAME = 'customer-authorization-service';
const STOP_TIMEOUT_MS = 1_000;

const contexts = new AsyncLocalStorage<Context>();

/**
 * Sends traces by OTLP over HTTP, in the background. Spans that the receiver does not take in time are discarded. The
 * exporter reads its headers, timeout, compression and certificates from OTEL_EXPORTER_OTLP_… itself.
 */
export class OtlpTracing {
  private readonly provider: TracerProvider;
  private readonly tracer: Tracer;

  /**
   * @param endpoint the base URL of the receiver, to which `/v1/traces` is added
   * @param share of the traces that begin here
   */
  constructor(endpoint: string, share: number) {
    const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` });
    this.provider = new TracerProvider({
      // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
      resource: resourceFromAttributes({ 'service.name': NAME, 'service.version': VERSION }).merge(
        detectResources({ detectors: [envDetector] }),
      ),
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
      spanProcessors: [new BatchSpanProcessor({ exporter, scheduledDelayMillis: 1_000 })],
    });
    this.tracer = this.provider.getTracer(NAME, VERSION);
  }

  /** Begins the span of a request, in the trace of its `traceparent` (W3C Trace Context) or in a new trace. */
  begin(request: IncomingMessage): RequestTrace {
    const parent = contextOf(request.headers.traceparent);
    const span = this.tracer.startSpan(`${request.method}`, { kind: SpanKind.SERVER }, parent);
    return new OtlpRequestTrace(this.tracer, span, trace.setSpan(parent, span));
  }

  async stop(): Promise<void> {
    const shutdown = this.provider.shutdown().catch(() => undefined);
    await Promise.race([shutdown, sleep(STOP_TIMEOUT_MS, undefined, { ref: false })]);
  }
}

class OtlpRequestTrace implements RequestTrace {
  constructor(
    private readonly tracer: Tracer,
    private readonly root: Span,
    private readonly context: Context,
  ) {}

  span<Result>(name: string, attributes: Record<string, string>, work: () => Promise<Result>): Promise<Result> {
    const parent = contexts.getStore() ?? this.context;
    const span = this.tracer.startSpan(name, { kind: SpanKind.INTERNAL, attributes }, parent);
    return contexts.run(trace.setSpan(parent, span), async () => {
      try {
        return await work();
      } catch (error) {
        setError(span, (error as Error).name);
        throw error;
      } finally {
        span.end();
      }
    });
  }

  end({ id, method, route, status, grant, clientId, organizationId, error }: FinishedRequest): void {
    this.root.updateName(`${method} ${route}`);
    this.root.setAttributes({
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status,
      'cas.request_id': id,
      ...(grant !== undefined && { 'cas.grant': grant }),
      ...(clientId !== undefined && { 'cas.client_id': clientId }),
      ...(organizationId !== undefined && { 'cas.organization_id': organizationId }),
    });
    if (status >= 500) setError(this.root, error ?? String(status));
    this.root.end();
  }
}

/** Marks a span as failed, by the kind of the error alone: its message could contain what the caller sent. */
function setError(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

function contextOf(traceparent: unknown): Context {
  const [, traceId, spanId, flags] = (typeof traceparent === 'string' && TRACEPARENT.exec(traceparent)) || [];
  if (traceId === undefined || spanId === undefined) return ROOT_CONTEXT;
  const remote: SpanContext = { traceId, spanId, traceFlags: Number.parseInt(flags as string, 16), isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, remote);
}
