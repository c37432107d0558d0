import { Catch } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { OAuthError } from '../../oauth/oauth-error.js';
import { OAuthExceptionFilter } from '../../oauth/oauth-exception.filter.js';
import { renderPage } from './page-view.js';

/** Shows a person an error as a page; whoever asks for JSON gets the one error shape. Never a redirect. */
@Catch()
export class PageExceptionFilter extends OAuthExceptionFilter {
  protected override write(error: OAuthError, request: Request, response: Response): void {
    if (request.accepts(['html', 'json']) !== 'html') return super.write(error, request, response);
    const { description, hint } = error;
    const page = renderPage(response, 'error', { description, hint, requestId: request.id });
    this.adapterHost.httpAdapter.reply(response, page, error.status);
  }
}
