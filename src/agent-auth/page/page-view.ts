import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Catch } from '@nestjs/common';
import type { Eta } from 'eta';
import type { Response } from 'express';
import type { OAuthError } from '../../oauth/oauth-error.js';
import { OAuthExceptionFilter } from '../../oauth/oauth-exception.filter.js';
import { loadWhenUsed } from '../../platform/load-when-used.js';
import { requestContext } from '../../platform/request-context/request-context.js';

/** Responds with a page, or with JSON if the `Accept` header prefers it. Never redirects. */
@Catch()
export class PageExceptionFilter extends OAuthExceptionFilter {
  protected override write(error: OAuthError, response: Response): void {
    if (response.req.accepts(['html', 'json']) !== 'html') return super.write(error, response);
    const { description, hint } = error;
    const page = renderPage(response, 'error', { description, hint, requestId: requestContext.required().responseId });
    this.adapterHost.httpAdapter.reply(response, page, error.status);
  }
}

let eta: Eta | undefined;

export const STYLESHEET = readFileSync(join(import.meta.dirname, 'views', 'page.css'), 'utf8');

export type View = 'sign-in' | 'consent' | 'continue' | 'signed-out' | 'error';

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/** Renders a page, and sets security headers that admit only what the page needs. */
export function renderPage(response: Response, view: View, values: object): string {
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY);
  response.setHeader('X-Frame-Options', 'DENY');
  response.setHeader('Referrer-Policy', 'same-origin');
  response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  eta ??= templates();
  return eta.render(view, values);
}

function templates(): Eta {
  const { Eta } = loadWhenUsed<typeof import('eta')>('eta');
  return new Eta({ views: join(import.meta.dirname, 'views'), cache: true, autoEscape: true });
}
