import { Get, HttpCode, Post, Req, UseFilters } from '@nestjs/common';
import type { Request } from 'express';
import { queryOf } from '../../oauth/form.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { REQUEST_ERRORS } from '../../oauth/request-errors.js';
import { EXAMPLE_PAGE } from '../../platform/http/api-examples.js';
import { ApiRoute } from '../../platform/http/api-route.js';
import { PublicController } from '../../platform/http/surfaces.js';
import { Registry } from '../../registry/registry.js';
import { AgentSessions } from '../session/agent-sessions.js';
import { CsrfTokens, formErrors } from '../session/csrf-tokens.js';
import { AuthorizationQuery, readAuthorizationRequest } from './authorization-request.js';
import { Authorizer } from './authorizer.js';
import { ConsentForm, readPageForm } from './page-forms.js';
import { PageResponses } from './page-responses.js';
import { PageExceptionFilter } from './page-view.js';

/** The authorization endpoint (protocol §6.1), and the route that receives the form of the consent page. */
@PublicController('')
@UseFilters(PageExceptionFilter)
export class AuthorizeController {
  constructor(
    private readonly registry: Registry,
    private readonly sessions: AgentSessions,
    private readonly authorizer: Authorizer,
    private readonly responses: PageResponses,
    private readonly csrfTokens: CsrfTokens,
  ) {}

  @Get()
  @ApiRoute({
    summary: 'Show the authorization page (RFC 6749 §3.1)',
    description:
      'Open this URL in the browser of an agent. The agent signs in and allows the access. The page then redirects to the application with a code or a token.',
    query: AuthorizationQuery,
    response: 'text/html',
    responseExamples: EXAMPLE_PAGE,
    redirects: true,
    errors: () => [
      OAuthError.invalidRequest('client_id: required'),
      REQUEST_ERRORS.clientUnknown(),
      OAuthError.invalidRequest('redirect_uri: required'),
      REQUEST_ERRORS.redirectUriUnknown(),
    ],
  })
  async authorize(@Req() request: Request): Promise<string> {
    const authorization = readAuthorizationRequest(queryOf(request.originalUrl), this.registry);
    if (authorization.error) return this.responses.sendError(request, authorization, authorization.error);
    const agent = await this.sessions.agentOf(request);
    if (!agent || authorization.prompt.includes('login')) return this.responses.askToSignIn(request, authorization);
    return this.responses.respond(request, authorization, agent, await this.authorizer.decide(authorization, agent));
  }

  @Post('consent')
  @ApiRoute({
    summary: 'Submit the form of the consent page',
    description: 'Only the page itself sends this form, from the browser that loaded it.',
    body: ConsentForm,
    bodyExamples: { 'the agent allows the access': ['csrf', 'request', 'scope', 'decision'] },
    bodyFormats: ['form'],
    response: 'text/html',
    responseExamples: EXAMPLE_PAGE,
    redirects: true,
    errors: formErrors,
  })
  @HttpCode(200)
  async consent(@Req() request: Request): Promise<string> {
    const { csrf, request: query = '', scope = '', decision } = await readPageForm(ConsentForm, request);
    this.csrfTokens.check(request, csrf);
    const authorization = readAuthorizationRequest(query, this.registry);
    if (authorization.error) return this.responses.sendError(request, authorization, authorization.error);
    const agent = await this.sessions.agentOf(request);
    if (!agent || authorization.prompt.includes('login')) return this.responses.askToSignIn(request, authorization);
    if (decision === 'deny') return this.responses.send(request, authorization, this.authorizer.deny());
    if (decision !== 'allow') throw OAuthError.invalidRequest('decision: must be allow or deny');
    const allowed = await this.authorizer.allow(authorization, agent, scope.split(' '));
    return this.responses.respond(request, authorization, agent, allowed);
  }
}
