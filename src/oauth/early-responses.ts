import type { RequestListener, ServerResponse } from 'node:http';
import type { Request } from 'express';
import type { MetricsRegistry } from '../platform/metrics.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { VERSION } from '../platform/version.js';
import { OAuthError } from './oauth-error.js';

const LIVENESS_PATH = '/health/live';
const READINESS_PATH = '/health/ready';
const METRICS_PATH = '/metrics';

/** A starting process is live but not ready. Its metrics show the operator that it waits for its database. */
export function startingResponses(metrics: MetricsRegistry): RequestListener {
  return (request, response) => {
    const path = request.url?.split('?', 1)[0] ?? '';
    if (requestContext.required().listener !== 'management') return writeUnavailable(response);
    // log and metrics show the routes that probes and Prometheus request
    if ([LIVENESS_PATH, READINESS_PATH, METRICS_PATH].includes(path)) (request as Request).route = { path };
    if (path === LIVENESS_PATH) write(response, 200, JSON.stringify({ status: 'live', version: VERSION }));
    else if (path === METRICS_PATH)
      metrics.metrics().then(
        (text) => write(response, 200, text, metrics.contentType),
        () => writeUnavailable(response),
      );
    else writeUnavailable(response);
  };
}

function writeUnavailable(response: ServerResponse): void {
  const error = OAuthError.unavailable();
  const { responseId } = requestContext.required();
  requestContext.set({ error: error.code, reason: 'starting' });
  for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
  write(response, error.status, JSON.stringify(error.toBody(responseId)));
}

function write(response: ServerResponse, status: number, text: string, type = 'application/json; charset=utf-8'): void {
  response.writeHead(status, {
    'Content-Type': type,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestContext.required().responseId,
  });
  response.end(text);
}

/** The body of the response to bytes that are not an HTTP request. */
export function brokenRequest(status: number, requestId: string): string {
  return JSON.stringify(OAuthError.brokenRequest({ status }).toBody(requestId));
}
