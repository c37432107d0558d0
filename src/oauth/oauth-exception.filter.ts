import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Response } from 'express';
import { requestContext } from '../platform/request-context/request-context.js';
import { OAuthError, REQUEST_ERRORS } from './oauth-error.js';

/** How the message begins of what NestJS makes of Express' URIError for a path with invalid percent-encoding. */
const UNDECODED_PATH = 'Failed to decode param';

/** Converts the exceptions of all layers to error responses (protocol §2.11). */
@Catch()
export class OAuthExceptionFilter implements ExceptionFilter {
  constructor(protected readonly adapterHost: HttpAdapterHost) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<Response>();
    const error = asOAuthError(exception);
    recordError(error);
    if (response.headersSent) return void response.destroy();
    // An error response sets no cookies, even if the handler set one before the error.
    response.removeHeader('Set-Cookie');
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    this.write(error, response);
  }

  protected write(error: OAuthError, response: Response): void {
    this.adapterHost.httpAdapter.reply(response, error.toBody(requestContext.required().id), error.status);
  }
}

function asOAuthError(exception: unknown): OAuthError {
  if (exception instanceof OAuthError) {
    // RFC 8628 §3.5 defines these errors for grants only
    const isMisplaced = exception.isPollingError && requestContext.required().grant === undefined;
    return isMisplaced ? OAuthError.serverError(new Error(`${exception.code}: only a grant may throw it`)) : exception;
  }
  if (!(exception instanceof HttpException)) return OAuthError.serverError(exception);
  const status = exception.getStatus();
  if (status === 400 && exception.message.startsWith(UNDECODED_PATH)) return REQUEST_ERRORS.pathEncoding();
  if (status === 404) return OAuthError.notFound();
  if (status === 405) return OAuthError.methodNotAllowed();
  if (status === 503) return OAuthError.unavailable(exception.cause ?? exception);
  return OAuthError.serverError(exception);
}

/** Adds the details that only the log shows, under the request id that the caller sees too. */
function recordError({ status, code, reason, hint, cause }: OAuthError): void {
  const why = reason ?? hint;
  requestContext.set({ error: code, ...(why && { reason: why }), ...(status >= 500 && { cause }) });
}
