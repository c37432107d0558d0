import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Response } from 'express';
import { requestContext } from '../platform/request-context/request-context.js';
import { OAuthError } from './oauth-error.js';
import { errorOf } from './thrown-error.js';

/** Headers that a route may have set before the error, and that an error response does not have, such as cookies. */
const OF_SUCCESS =
  /^(set-cookie|content-(type|length|encoding|language|range|disposition|location)|cache-control|etag|expires|last-modified|location)$/;

/** Converts the exceptions of all layers to error responses (protocol §2.11). */
@Catch()
export class OAuthExceptionFilter implements ExceptionFilter {
  constructor(protected readonly adapterHost: HttpAdapterHost) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<Response>();
    const error = withHintOfGrant(allowedError(errorOf(exception)));
    recordError(error);
    if (response.headersSent) return void response.destroy();
    for (const name of response.getHeaderNames()) if (OF_SUCCESS.test(name)) response.removeHeader(name);
    const isOwn = exception instanceof OAuthError;
    for (const [name, value] of Object.entries(error.headers))
      if (isOwn || !response.hasHeader(name)) response.setHeader(name, value);
    this.write(error, response);
  }

  protected write(error: OAuthError, response: Response): void {
    this.adapterHost.httpAdapter.reply(response, error.toBody(requestContext.required().responseId), error.status);
  }
}

/** RFC 8628 §3.5 defines some errors for grants only. */
function allowedError(error: OAuthError): OAuthError {
  const isMisplaced = error.isPollingError && requestContext.required().grant === undefined;
  return isMisplaced ? OAuthError.serverError(new Error(`${error.code}: only a grant may throw it`)) : error;
}

/** The hint is the same for every cause, so that it tells an attacker nothing about a guessed value. */
function withHintOfGrant(error: OAuthError): OAuthError {
  const { invalidGrantHint } = requestContext.required();
  return error.code === 'invalid_grant' && invalidGrantHint !== undefined ? error.withHint(invalidGrantHint) : error;
}

/** Adds the details that only the log shows, under the request id that the caller sees too. */
function recordError({ status, code, reason, hint, cause, facts }: OAuthError): void {
  const why = reason ?? hint;
  requestContext.set({ ...facts, error: code, ...(why && { reason: why }), ...(status >= 500 && { cause }) });
}
