import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { OAuthError } from './oauth-error.js';

/** Turns whatever is thrown, on whatever layer, into the one error shape (contract, section 6). */
@Catch()
export class OAuthExceptionFilter implements ExceptionFilter {
  private readonly logger = new Logger('Error');

  constructor(protected readonly adapterHost: HttpAdapterHost) {}

  catch(exception: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const error = asOAuthError(exception);
    this.note(request, error);
    if (response.headersSent) return void response.destroy();
    response.removeHeader('Set-Cookie'); // a refusal gives nothing, also where it came late
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    this.write(error, request, response);
  }

  /** The private side of an answer, under the id that the caller sees too: why, and of a fault of ours from where. */
  private note({ id }: Request, { status, code, reason, hint, cause }: OAuthError): void {
    if (status === 500) this.logger.error(`${id} ${code}: ${traceOf(cause)}`);
    else if (status > 500) this.logger.warn(`${id} ${code}: ${cause instanceof Error ? cause.message : reason}`);
    else this.logger.log(`${id} ${code}: ${reason ?? hint ?? status}`);
  }

  protected write(error: OAuthError, request: Request, response: Response): void {
    this.adapterHost.httpAdapter.reply(response, error.toBody(request.id), error.status);
  }
}

function asOAuthError(exception: unknown): OAuthError {
  if (exception instanceof OAuthError) return exception;
  if (!(exception instanceof HttpException)) return OAuthError.serverError(exception);
  switch (exception.getStatus()) {
    case 400: // Express could not decode the path
      return OAuthError.invalidRequest('address: percent-encoding is broken');
    case 404:
      return OAuthError.notFound();
    case 405:
      return OAuthError.methodNotAllowed();
    case 503:
      return OAuthError.unavailable(exception.cause ?? exception);
    default:
      return OAuthError.serverError(exception);
  }
}

/** The stack of an error and of what caused it. Database errors name the statement, never its parameters. */
function traceOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return cause.cause ? `${cause.stack}\ncaused by ${traceOf(cause.cause)}` : String(cause.stack);
}
