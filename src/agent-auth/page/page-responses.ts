import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CUSTOMERS_MANAGE, CUSTOMERS_OWN } from '../../http/callers/principal.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { Agent } from '../../registry/agent.entity.js';
import type { AuthorizationRequest } from './authorization-request.js';
import { errorParameters, type ResponseParameters, responseUrl } from './authorization-response.js';
import type { Decision } from './authorizer.js';
import { renderPage } from './page-view.js';

const SCOPE_DESCRIPTIONS: Record<string, string> = {
  [CUSTOMERS_OWN]: 'create customers, and act in the name of each of your customers',
  [CUSTOMERS_MANAGE]: 'read and erase everything that is stored about each of your customers',
};

@Injectable()
export class PageResponses {
  constructor(private readonly configuration: Configuration) {}

  private send(request: Request, authorization: AuthorizationRequest, parameters: ResponseParameters): string {
    if (parameters.error) requestContext.set({ error: parameters.error, reason: parameters.error_hint ?? 'the page' });
    const url = responseUrl(authorization, parameters, this.configuration.AUTH_URL);
    // a registered redirect URI may have characters outside ASCII, which a header cannot contain
    const target = url.replace(/[^\x21-\x7e]+/g, encodeURIComponent);
    const response = request.res as Response;
    return request.method === 'POST' ? renderNavigation(response, authorization, target) : redirect(response, target);
  }

  sendError(request: Request, authorization: AuthorizationRequest, error: string, hint: string): string {
    return this.send(request, authorization, errorParameters(error, hint));
  }

  askToSignIn(request: Request, authorization: AuthorizationRequest, email = '', problem?: string): string {
    if (authorization.prompt.includes('none'))
      return this.sendError(request, authorization, 'login_required', 'prompt: none');
    const { client, query } = authorization;
    const values = { clientName: client.name, query, email, problem };
    return renderPage(request.res as Response, 'sign-in', values);
  }

  respond(request: Request, authorization: AuthorizationRequest, agent: Agent, decision: Decision): string {
    if ('response' in decision) return this.send(request, authorization, decision.response);
    const { client, query } = authorization;
    const scope = decision.consentTo;
    const permissions = scope.split(' ').map((name) => SCOPE_DESCRIPTIONS[name] ?? name);
    const ofClient = { clientName: client.name, isPublic: client.organizationId === null };
    const values = { ...ofClient, query, scope, permissions, email: agent.email };
    return renderPage(request.res as Response, 'consent', values);
  }

  /** Navigates to the page with the same request, which is then decided for the agent who has just signed in. */
  returnToPage(request: Request, authorization: AuthorizationRequest): string {
    const query = new URLSearchParams(authorization.query);
    const prompt = authorization.prompt.filter((each) => each !== 'login');
    if (prompt.length > 0) query.set('prompt', prompt.join(' '));
    else query.delete('prompt');
    return renderNavigation(request.res as Response, authorization, `/?${query}`);
  }
}

function redirect(response: Response, target: string): string {
  response.status(302);
  response.setHeader('Location', target);
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.setHeader('Referrer-Policy', 'no-referrer');
  return '';
}

/**
 * Ends a posted form. Browsers apply `form-action` to each redirect after a form, also to those of the application. A
 * page that navigates ends the form, so the application may redirect to any origin.
 */
function renderNavigation(response: Response, { client }: AuthorizationRequest, target: string): string {
  const page = renderPage(response, 'continue', { clientName: client.name, target });
  response.setHeader('Referrer-Policy', 'no-referrer');
  return page;
}
