import type { Level, Logger } from 'pino';
import type { FinishedRequest } from '../request-context/finished-request.js';

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

/** Whether the message of an error can quote values of database rows. */
function quotesRows(error: Error): boolean {
  return 'errno' in error || 'driverError' in error;
}

/**
 * The messages of an error and of its causes, for the log, without the values that some messages quote.
 *
 * @param stack whether to add the stack frames
 */
export function traceOf(cause: unknown, stack: boolean): string {
  if (!(cause instanceof Error)) return typeof cause;
  const message = quotesRows(cause) ? cause.message.replace(/'.*'|".*"|`.*`/s, '…') : cause.message;
  const frames = stack ? (cause.stack?.match(/^ +at .*$/gm) ?? []) : [];
  // the message of a parser quotes the text that it could not parse
  const summary = cause instanceof SyntaxError ? cause.name : `${cause.name}: ${message}`;
  const own = [summary, ...frames].join('\n');
  return cause.cause === undefined ? own : `${own}\ncaused by ${traceOf(cause.cause, stack)}`;
}
