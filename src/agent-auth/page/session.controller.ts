import { Get, Header, HttpCode, Post, Req, UseFilters } from '@nestjs/common';
import type { Request, Response } from 'express';
import { OAuthError } from '../../oauth/oauth-error.js';
import { EXAMPLE_PAGE } from '../../platform/http/api-examples.js';
import { ApiRoute } from '../../platform/http/api-route.js';
import { PublicController } from '../../platform/http/surfaces.js';
import { Registry } from '../../registry/registry.js';
import { AgentSessions } from '../session/agent-sessions.js';
import { CsrfTokens, formErrors } from '../session/csrf-tokens.js';
import { readAuthorizationRequest } from './authorization-request.js';
import { PageForm, readPageForm, SignInForm } from './page-forms.js';
import { PageResponses } from './page-responses.js';
import { PageExceptionFilter, renderPage, STYLESHEET } from './page-view.js';
import { SignIn } from './sign-in.js';

/** The routes of the sign-in form and the sign-out form (protocol §6.4). */
@PublicController('')
@UseFilters(PageExceptionFilter)
export class SessionController {
  constructor(
    private readonly registry: Registry,
    private readonly sessions: AgentSessions,
    private readonly signIn: SignIn,
    private readonly responses: PageResponses,
    private readonly csrfTokens: CsrfTokens,
  ) {}

  @Post('sign-in')
  @HttpCode(200)
  @ApiRoute({
    summary: 'Submit the form of the sign-in page',
    description: 'Only the page itself sends this form, from the browser that loaded it.',
    body: SignInForm,
    bodyExamples: { 'an agent': ['csrf', 'request', 'email', 'password'] },
    bodyFormats: ['form'],
    response: 'text/html',
    responseExamples: EXAMPLE_PAGE,
    redirects: true,
    errors: () => [...formErrors(), OAuthError.rateLimited(1, 'example')],
  })
  async beginSession(@Req() request: Request): Promise<string> {
    const form = await readPageForm(SignInForm, request);
    const { csrf, request: query = '', email = '', password = '' } = form;
    this.csrfTokens.check(request, csrf);
    const authorization = readAuthorizationRequest(query, this.registry);
    const outcome = await this.signIn.attempt(request, email, password);
    if ('agent' in outcome) {
      await this.sessions.begin(request, outcome.agent);
      return this.responses.redirectToPage(request, authorization);
    }
    const { status, problem, retryAfter } = outcome;
    request.res?.status(status);
    if (retryAfter !== undefined) request.res?.setHeader('Retry-After', String(retryAfter));
    return this.responses.askToSignIn(request, authorization, email, problem);
  }

  @Post('sign-out')
  @HttpCode(200)
  @ApiRoute({
    summary: 'Sign the agent out',
    description: 'Ends the session of the agent in this browser. Only the page itself sends this form.',
    body: PageForm,
    bodyExamples: { 'an agent': ['csrf'] },
    bodyFormats: ['form'],
    response: 'text/html',
    responseExamples: EXAMPLE_PAGE,
    errors: formErrors,
  })
  async endSession(@Req() request: Request): Promise<string> {
    const { csrf } = await readPageForm(PageForm, request);
    this.csrfTokens.check(request, csrf);
    await this.sessions.end(request);
    return renderPage(request.res as Response, 'signed-out', {});
  }

  @Get('page.css')
  @ApiRoute({
    summary: 'Get the stylesheet of the pages',
    description: 'The authorization page loads it.',
    response: 'text/css',
    responseExamples: 'body { margin: 0 }',
  })
  @Header('Content-Type', 'text/css; charset=utf-8')
  @Header('Cache-Control', 'public, max-age=3600')
  stylesheet(): string {
    return STYLESHEET;
  }
}
