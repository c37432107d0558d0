import type { IncomingMessage } from 'node:http';
import type { Configuration } from '../configuration/configuration.js';
import { currentRequest, type FinishedRequest } from '../http/current-request.js';

/** The spans of one request. */
export interface RequestTrace {
  /** Does a part of the request's work as a span of its own, below the one it is part of. */
  span<Result>(name: string, attributes: Record<string, string>, work: () => Promise<Result>): Promise<Result>;
  end(request: FinishedRequest): void;
}

/** Traces requests (OpenTelemetry), where an operator has said where to. */
export interface Tracing {
  /** Begins a trace, or goes on with the one that the request's `traceparent` names (W3C Trace Context). */
  begin(request: IncomingMessage): RequestTrace;
  /** Sends what is still kept. */
  stop(): Promise<void>;
}

/** `undefined` without OTEL_EXPORTER_OTLP_ENDPOINT: then no part of OpenTelemetry is even loaded. */
export async function startTracing({ OTEL_EXPORTER_OTLP_ENDPOINT }: Configuration): Promise<Tracing | undefined> {
  if (OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined;
  const { OtlpTracing } = await import('./otlp-tracing.js');
  return new OtlpTracing(OTEL_EXPORTER_OTLP_ENDPOINT);
}

/** Does work as a span of the current request; where nothing is traced, just does it. */
export function traced<Result>(
  name: string,
  attributes: Record<string, string>,
  work: () => Promise<Result>,
): Promise<Result> {
  const trace = currentRequest()?.trace;
  return trace ? trace.span(name, attributes, work) : work();
}
