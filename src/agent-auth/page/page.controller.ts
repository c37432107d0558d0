import { Get, Header, HttpCode, Post, Req, UseFilters } from '@nestjs/common';
import type { Request, Response } from 'express';
import { queryOf } from '../../oauth/form.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { readParameters } from '../../oauth/parameters.js';
import { readBody } from '../../oauth/request-body.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiRoute } from '../../platform/http/api-route.js';
import { PublicController } from '../../platform/http/listener.decorators.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { ApiOptionalString } from '../../platform/validation/validation.js';
import type { Agent } from '../../registry/agent.entity.js';
import { Registry } from '../../registry/registry.js';
import { AgentChangedError } from '../../session/agent/agent-sessions.js';
import { PageSessions } from '../session/page-sessions.js';
import { AuthorizationQuery, type AuthorizationRequest, readAuthorizationRequest } from './authorization-request.js';
import { Authorizer, type Decision, deny } from './authorizer.js';
import { PageResponses } from './page-responses.js';
import { PageExceptionFilter, renderPage, STYLESHEET } from './page-view.js';
import { SignIn } from './sign-in.js';

const PAGE = { response: 'text/html' };
const FORM = {
  ...PAGE,
  bodyFormats: ['form' as const],
  description: 'Only the page itself sends this form, from the browser that loaded it.',
};

const foreignOrigin = () => OAuthError.invalidRequest('Origin: must be the origin of this service');

const EXAMPLE_REQUEST = new URLSearchParams({
  response_type: 'code',
  client_id: EXAMPLE.serverClientId,
  redirect_uri: EXAMPLE.redirectUri,
}).toString();

/** Every field of a form is optional, because each route decides what a missing field means. */
class RequestForm {
  @ApiOptionalString('The hidden field of the form with the query of the authorization request.', EXAMPLE_REQUEST)
  request?: string;
}

class SignInForm extends RequestForm {
  @ApiOptionalString('The email of the agent.', EXAMPLE.agentEmail)
  email?: string;

  @ApiOptionalString('The password of the agent.', EXAMPLE.agentPassword)
  password?: string;
}

class ConsentForm extends RequestForm {
  @ApiOptionalString('The scopes that the page showed, separated by spaces.', EXAMPLE.scope)
  scope?: string;

  @ApiOptionalString('`allow` or `deny`.', 'allow')
  decision?: string;
}

/** The authorization endpoint (protocol §6.1), and the routes that receive the forms of its pages (protocol §6.4). */
@PublicController('')
@UseFilters(PageExceptionFilter)
export class PageController {
  constructor(
    private readonly registry: Registry,
    private readonly sessions: PageSessions,
    private readonly authorizer: Authorizer,
    private readonly signIn: SignIn,
    private readonly responses: PageResponses,
    private readonly configuration: Configuration,
  ) {}

  @Get()
  @ApiRoute({
    ...PAGE,
    summary: 'Show the authorization page (RFC 6749 §3.1)',
    description:
      'Open this URL in the browser of an agent. The agent signs in and allows the access. The page then redirects to the application with a code or a token.',
    query: AuthorizationQuery,
    redirects: true,
    errors: ['429 temporarily_unavailable'],
  })
  authorize(@Req() request: Request): Promise<string> {
    return this.respond(request, queryOf(request.originalUrl), (authorization, agent) =>
      this.authorizer.decide(authorization, agent),
    );
  }

  @Post('consent')
  @ApiRoute({
    ...FORM,
    summary: 'Submit the form of the consent page',
    body: ConsentForm,
    errors: ['429 temporarily_unavailable'],
  })
  @HttpCode(200)
  async consent(@Req() request: Request): Promise<string> {
    const { request: query = '', scope = '', decision } = await this.readForm(ConsentForm, request);
    return this.respond(request, query, (authorization, agent) => {
      if (decision === 'deny') return deny('access_denied', 'the agent denied the request');
      if (decision !== 'allow') throw OAuthError.invalidRequest('decision: must be allow or deny');
      return this.authorizer.allow(authorization, agent, scope.split(' '));
    });
  }

  @Post('sign-in')
  @HttpCode(200)
  @ApiRoute({
    ...FORM,
    summary: 'Submit the form of the sign-in page',
    body: SignInForm,
    errors: ['429 temporarily_unavailable'],
  })
  async beginSession(@Req() request: Request): Promise<string> {
    const form = await this.readForm(SignInForm, request);
    const { request: query = '', email = '', password = '' } = form;
    const authorization = this.readAuthorization(query);
    const outcome = await this.signIn.attempt(request, email, password);
    if ('agent' in outcome)
      return this.orAskToSignIn(request, authorization, async () => {
        await this.sessions.begin(request, outcome.agent);
        return this.responses.returnToPage(request, authorization);
      });
    const { status, problem, retryAfter, error, reason } = outcome;
    requestContext.set({ error, reason });
    request.res?.status(status);
    if (retryAfter !== undefined) request.res?.setHeader('Retry-After', String(retryAfter));
    return this.responses.askToSignIn(request, authorization, email, problem);
  }

  @Post('sign-out')
  @HttpCode(200)
  @ApiRoute({
    ...FORM,
    summary: 'Sign the agent out',
    description: 'Ends the session of the agent in this browser. Only the page itself sends this form.',
    body: RequestForm,
  })
  async endSession(@Req() request: Request): Promise<string> {
    await this.readForm(RequestForm, request);
    await this.sessions.end(request);
    return renderPage(request.res as Response, 'signed-out', {});
  }

  @Get('page.css')
  @ApiRoute({ summary: 'Get the stylesheet of the pages', isPageFile: true })
  @Header('Content-Type', 'text/css; charset=utf-8')
  @Header('Cache-Control', 'public, max-age=3600')
  stylesheet(): string {
    return STYLESHEET;
  }

  /**
   * Every browser sends the `Origin` of a posted form, so a request without one, or from another origin, was not sent
   * by a page of the service (cross-site request forgery). A form is never JSON (protocol §2.4).
   */
  private async readForm<Form extends object>(form: new () => Form, request: Request): Promise<Form> {
    if (request.headers.origin !== this.configuration.AUTH_URL) throw foreignOrigin();
    return readParameters(form, await readBody(request, { form: 'only' }));
  }

  private readAuthorization(query: string): AuthorizationRequest {
    const authorization = readAuthorizationRequest(query, this.registry);
    requestContext.set({ clientId: authorization.client.clientId });
    return authorization;
  }

  /** Responds to an authorization request. Only the request of a signed-in agent is decided. */
  private async respond(
    request: Request,
    query: string,
    decide: (authorization: AuthorizationRequest, agent: Agent) => Decision | Promise<Decision>,
  ): Promise<string> {
    const authorization = this.readAuthorization(query);
    if (authorization.violation)
      return this.responses.sendError(request, authorization, 'invalid_request', authorization.violation);
    const agent = await this.sessions.agentOf(request);
    if (!agent || authorization.prompt.includes('login')) return this.responses.askToSignIn(request, authorization);
    return this.orAskToSignIn(request, authorization, async () =>
      this.responses.respond(request, authorization, agent, await decide(authorization, agent)),
    );
  }

  /** An agent that has changed during the request signs in again. */
  private async orAskToSignIn(
    request: Request,
    authorization: AuthorizationRequest,
    respond: () => Promise<string>,
  ): Promise<string> {
    try {
      return await respond();
    } catch (error) {
      if (!(error instanceof AgentChangedError)) throw error;
      return this.responses.askToSignIn(request, authorization);
    }
  }
}
