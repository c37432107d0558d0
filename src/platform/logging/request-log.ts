import type { Level, Logger } from 'pino';
import type { FinishedRequest } from '../request-context/finished-request.js';
import { traceOf } from './trace.js';

/** Routes that the cluster requests every few seconds. Their successful requests are logged at level debug. */
const PROBE = /^\/(health\/|metrics$)/;

/**
 * Writes one line for each finished request (docs/observability.md). A line contains only what the service knows, never
 * what the caller sent: no path, query, header, body or cookie.
 */
export class RequestLog {
  constructor(private readonly logger: Logger) {}

  write(request: FinishedRequest): void {
    const level = levelOf(request);
    if (!this.logger.isLevelEnabled(level)) return;
    const { id, surface, method, route, status, milliseconds, grant, token, error, reason, cause } = request;
    const line = {
      request_id: id,
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
    this.logger[level](line, 'request');
  }
}

function levelOf({ status, route }: FinishedRequest): Level {
  if (status === 500) return 'error';
  if (status > 500) return 'warn';
  return PROBE.test(route) ? 'debug' : 'info';
}
