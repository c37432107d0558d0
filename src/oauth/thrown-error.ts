import type { HttpException } from '@nestjs/common';
import { requestContext } from '../platform/request-context/request-context.js';
import { OAuthError } from './oauth-error.js';

/** How the message begins of what NestJS makes of Express' URIError for a path with invalid percent-encoding. */
const UNDECODED_PATH = 'Failed to decode param';

/** The error response to what a route, guard, pipe, interceptor or grant has thrown. */
export function errorOf(thrown: unknown): OAuthError {
  if (thrown instanceof OAuthError) return thrown;
  const status = statusOf(thrown);
  if (status === undefined) return OAuthError.serverError(thrown);
  const { message, cause = thrown } = thrown as Error;
  if (status === 400 && message.startsWith(UNDECODED_PATH))
    return OAuthError.invalidRequest('path: invalid percent-encoding');
  if (status >= 500) return OAuthError.ofStatus(status, { cause: status === 503 ? cause : thrown });
  // the message for an unknown route has the path that the caller sent
  return OAuthError.ofStatus(status, requestContext.required().matchedRoute === 'none' ? {} : { reason: message });
}

/** The status of an HTTP exception; `undefined` if the error is none, or if its status is not that of an error. */
function statusOf(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const status = isHttpException(thrown) ? thrown.getStatus() : statusOfHttpError(thrown);
  return Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined;
}

/** By its methods, because an extension that depends on another version of NestJS has another class. */
function isHttpException(error: Error): error is HttpException {
  const { getStatus, getResponse } = error as Partial<HttpException>;
  return typeof getStatus === 'function' && typeof getResponse === 'function';
}

/** Middleware throws errors of the package `http-errors`. An error of an HTTP client may have a status, too. */
function statusOfHttpError(error: Error & { expose?: unknown; statusCode?: unknown }): number {
  return typeof error.expose === 'boolean' ? Number(error.statusCode) : Number.NaN;
}
