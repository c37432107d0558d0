import type { IncomingMessage } from 'node:http';
import type { RequestTrace } from '../request-context/finished-request.js';
import { requestContext } from '../request-context/request-context.js';

/** Traces requests (OpenTelemetry), where an operator has said where to. */
export interface Tracing {
  /** Begins a trace, or goes on with the one that the request's `traceparent` names (W3C Trace Context). */
  begin(request: IncomingMessage): RequestTrace;
  /** Sends what is still kept. */
  stop(): Promise<void>;
}

/** Does work as a span of the current request; where nothing is traced, just does it. */
export function traced<Result>(
  name: string,
  attributes: Record<string, string>,
  work: () => Promise<Result>,
): Promise<Result> {
  const trace = requestContext.current()?.trace;
  return trace ? trace.span(name, attributes, work) : work();
}
