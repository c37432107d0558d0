import type { Level, Logger } from 'pino';
import type { FinishedRequest } from '../request-context/finished-request.js';
import { traceOf } from './trace.js';

/** What the cluster asks every few seconds: of no interest as long as the answer is good. */
const PROBE = /^\/(health\/|metrics$)/;

/**
 * One line for each request, when it is over (docs/observability.md). It is made of what the service knows, never of what
 * the caller sent: no address, query, header, body or cookie.
 */
export class RequestLog {
  constructor(private readonly logger: Logger) {}

  write(request: FinishedRequest): void {
    const level = levelOf(request);
    if (!this.logger.isLevelEnabled(level)) return;
    const { id, surface, method, route, status, milliseconds, grant, error, reason, cause } = request;
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
      error,
      reason,
      fault: cause === undefined ? undefined : traceOf(cause, status === 500),
    };
    this.logger[level](line, 'request');
  }
}

function levelOf({ status, route }: FinishedRequest): Level {
  if (status === 500) return 'error';
  if (status > 500) return 'warn';
  return PROBE.test(route) ? 'debug' : 'info';
}
