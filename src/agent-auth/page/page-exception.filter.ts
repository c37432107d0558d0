import { Catch } from '@nestjs/common';
import type { Response } from 'express';
import type { OAuthError } from '../../oauth/oauth-error.js';
import { OAuthExceptionFilter } from '../../oauth/oauth-exception.filter.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { renderPage } from './page-view.js';

/**
 * Responds with an error page, or with the JSON error response if the `Accept` header prefers JSON. Never redirects.
 */
@Catch()
export class PageExceptionFilter extends OAuthExceptionFilter {
  protected override write(error: OAuthError, response: Response): void {
    if (response.req.accepts(['html', 'json']) !== 'html') return super.write(error, response);
    const { description, hint } = error;
    const page = renderPage(response, 'error', { description, hint, requestId: requestContext.required().id });
    this.adapterHost.httpAdapter.reply(response, page, error.status);
  }
}
