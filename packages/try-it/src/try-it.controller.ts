import { join } from 'node:path';
import { ApiRoute, Configuration, OAuthError, PublicController } from '@customer-authorization/service/grant';
import { Get, Param, Res } from '@nestjs/common';
import { Eta } from 'eta';
import type { Response } from 'express';
import { isLoopbackHost } from './demo-backend.guard.js';
import { DEMO } from './demo-registry.js';
import { DemoSetup } from './demo-setup.js';
import { readPageFiles } from './page-files.js';

const PAGE = {
  response: 'text/html',
  errors: ['404 not_found'],
} as const;

/** Admits only what the service itself serves. Scripts cannot write markup: they need a trusted type for it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

type View = 'try' | 'second-browser' | 'signed-in' | 'unavailable';

/** The try-it page with its pages for the second browser and for the end of an agent's sign-in (protocol §11). */
@PublicController('try')
export class TryItController {
  private readonly files = readPageFiles();
  private readonly eta = new Eta({ views: join(import.meta.dirname, '../views'), cache: true, autoEscape: true });

  constructor(
    private readonly setup: DemoSetup,
    private readonly configuration: Configuration,
  ) {}

  @Get()
  @ApiRoute({
    summary: 'Show the try-it page',
    description:
      'Tries every step of the service in a browser, with the real requests and responses. Only with the entries of the demo.',
    ...PAGE,
  })
  page(@Res({ passthrough: true }) response: Response): string {
    return this.render(response, 'try');
  }

  @Get('second-browser')
  @ApiRoute({
    summary: 'Show the page for a second browser',
    description: 'The try-it page opens it to move a customer to a second browser.',
    ...PAGE,
  })
  secondBrowser(@Res({ passthrough: true }) response: Response): string {
    return this.render(response, 'second-browser');
  }

  @Get('signed-in')
  @ApiRoute({
    summary: 'Show the token of an agent who signed in',
    description: 'The redirect URI of the demo clients.',
    ...PAGE,
  })
  signedIn(@Res({ passthrough: true }) response: Response): string {
    return this.render(response, 'signed-in');
  }

  @Get('files/:name')
  @ApiRoute({ summary: 'Get a file of the try-it page', isPageFile: true })
  file(@Param('name') name: string, @Res({ passthrough: true }) response: Response): string {
    const file = this.files.get(name);
    if (!file) throw OAuthError.notFound();
    response.setHeader('Content-Type', file.type);
    return file.text;
  }

  private render(response: Response, view: View): string {
    response.setHeader('Content-Type', 'text/html; charset=utf-8');
    response.setHeader('Content-Security-Policy', CONTENT_SECURITY_POLICY);
    response.setHeader('X-Frame-Options', 'DENY');
    response.setHeader('Referrer-Policy', 'same-origin');
    response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
    const problem = this.setup.problem();
    if (problem !== undefined) response.status(404);
    const { AUTH_URL, DATA_DIR } = this.configuration;
    const isLoopback = isLoopbackHost(new URL(AUTH_URL).host);
    const values = { demo: DEMO, authUrl: AUTH_URL, isLoopback, dataFolder: DATA_DIR, problem };
    return this.eta.render(problem === undefined ? view : 'unavailable', values);
  }
}
