import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Catch } from '@nestjs/common';
import type { Eta } from 'eta';
import type { Response } from 'express';
import type { OAuthError } from '../../oauth/oauth-error.js';
import { OAuthExceptionFilter } from '../../oauth/oauth-exception.filter.js';
import { loadWhenUsed } from '../../platform/load-when-used.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { AuthorizationRequest } from './authorization-request.js';

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

export type View = 'sign-in' | 'consent' | 'signed-out' | 'error';

/** Renders a page, and sets security headers that admit only what the page needs. */
export function renderPage(response: Response, view: View, values: object, request?: AuthorizationRequest): string {
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.setHeader('Content-Security-Policy', contentSecurityPolicy(request));
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

/** Browsers apply `form-action` also to redirects that follow a form, so it lists the sources of the redirect URI. */
function contentSecurityPolicy(request: AuthorizationRequest | undefined): string {
  const target = request === undefined ? '' : ` ${redirectSources(request)}`;
  return `default-src 'none'; style-src 'self'; form-action 'self'${target}; frame-ancestors 'none'; base-uri 'none'`;
}

/** The callback of a server often redirects to another origin, and `form-action` applies to that redirect too. */
function redirectSources({ redirectUri, responseType }: AuthorizationRequest): string {
  const { origin, protocol } = new URL(redirectUri);
  if (origin === 'null') return protocol;
  return responseType === 'code' ? `${origin} ${protocol}` : origin;
}
