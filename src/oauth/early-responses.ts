import type { RequestListener } from 'node:http';
import { pathOn } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { OAuthError } from './oauth-error.js';

const LIVENESS_PATH = pathOn('management', '/health/live');

/** Responds until the application has started: the process is live but not ready. */
export const starting: RequestListener = (request, response) => {
  const isLive = request.url?.split('?', 1)[0] === LIVENESS_PATH;
  const { id } = requestContext.required();
  const error = OAuthError.unavailable();
  if (!isLive) requestContext.set({ error: error.code, reason: 'starting' });
  response.writeHead(isLive ? 200 : error.status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': id,
    ...(!isLive && error.headers),
  });
  response.end(JSON.stringify(isLive ? { status: 'live' } : error.toBody(id)));
};

/** The body of the response to bytes that are not an HTTP request. */
export function brokenRequest(status: number, requestId: string): string {
  return JSON.stringify(OAuthError.brokenRequest({ status }).toBody(requestId));
}
