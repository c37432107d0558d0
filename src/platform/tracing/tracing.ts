import type { IncomingMessage } from 'node:http';
import { type RequestTrace, requestContext } from '../request-context/request-context.js';

/** Traces requests by OpenTelemetry. */
export interface Tracing {
  /** Begins the span of a request, in the trace of its `traceparent` (W3C Trace Context) or in a new trace. */
  begin(request: IncomingMessage): RequestTrace;
  /** Sends the spans that are still buffered. */
  stop(): Promise<void>;
}

/** Runs work in a span of the current request. Without tracing, it runs the work alone. */
export function traced<Result>(
  name: string,
  attributes: Record<string, string>,
  work: () => Promise<Result>,
): Promise<Result> {
  const trace = requestContext.current()?.trace;
  return trace ? trace.span(name, attributes, work) : work();
}
