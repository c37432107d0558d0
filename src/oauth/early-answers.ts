import type { RequestListener } from 'node:http';
import { noteRequest } from '../platform/http/current-request.js';
import { OAuthError } from './oauth-error.js';

/** What is answered before the application can: the process lives, and is not ready. */
export const starting: RequestListener = (request, response) => {
  const isLive = request.url?.split('?', 1)[0] === '/management/health/live';
  const error = OAuthError.unavailable();
  if (!isLive) noteRequest({ error: error.code, reason: 'starting' });
  response.writeHead(isLive ? 200 : error.status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': request.id,
    ...(!isLive && error.headers),
  });
  response.end(JSON.stringify(isLive ? { status: 'live' } : error.toBody(request.id)));
};

/** The body of the answer to bytes that are no HTTP request. */
export function brokenRequest(status: number, requestId: string): string {
  return JSON.stringify(OAuthError.brokenRequest({ status }).toBody(requestId));
}
