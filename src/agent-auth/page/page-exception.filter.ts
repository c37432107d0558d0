import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { OAuthError } from '../../oauth/oauth-error.js';
import { OAuthExceptionFilter } from '../../oauth/oauth-exception.filter.js';
import { renderPage } from './page-view.js';

/** Shows a person an error as a page; whoever asks for JSON gets the one error shape. Never a redirect. */
@Catch(OAuthError)
export class PageExceptionFilter implements ExceptionFilter<OAuthError> {
  private readonly asJson: OAuthExceptionFilter;

  constructor(private readonly adapterHost: HttpAdapterHost) {
    this.asJson = new OAuthExceptionFilter(adapterHost);
  }

  catch(error: OAuthError, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    if (request.accepts(['html', 'json']) !== 'html') return this.asJson.catch(error, host);
    response.removeHeader('Set-Cookie');
    for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value);
    const { description, hint } = error;
    const page = renderPage(response, 'error', { description, hint, requestId: request.id });
    this.adapterHost.httpAdapter.reply(response, page, error.status);
  }
}
