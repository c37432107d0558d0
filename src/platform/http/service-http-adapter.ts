import type { ServerResponse } from 'node:http';
import { MethodNotAllowedException } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { requestContext } from '../request-context/request-context.js';
import { allowedMethods } from './allowed-methods.js';
import { isOnSurface } from './surfaces.js';

/** Express without what an API does not use (etags, `X-Powered-By`, body parsers), and one way to write an answer. */
export class ServiceHttpAdapter extends ExpressAdapter {
  /**
   * @param trustProxy whose `X-Forwarded-For` counts: how many proxies, or which addresses; none when left out
   * @param isClosed whether a route is not to exist in this process
   */
  constructor(trustProxy?: string, isClosed: (path: string) => boolean = () => false) {
    const application = express();
    if (trustProxy !== undefined)
      application.set('trust proxy', /^\d+$/.test(trustProxy) ? Number(trustProxy) : trustProxy);
    application.disable('x-powered-by');
    application.disable('etag');
    application.enable('case sensitive routing');
    const route = application.route.bind(application);
    const nowhere = express.Router();
    // a controller without a surface could match all the same, by a parameter or wildcard: its routes are not mounted
    application.route = (path: string) => (isOnSurface(path) && !isClosed(path) ? route(path) : nowhere.route(path));
    super(application);
  }

  /** Writes a whole answer: an object as JSON, a text under the Content-Type that its controller has set. */
  override reply(response: Response, body: unknown, statusCode?: number): void {
    const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
    response.writeHead(statusCode ?? response.statusCode, answerHeaders(response, requestContext.required().id, text));
    response.end(response.req.method === 'HEAD' ? undefined : text);
  }

  /** An address that exists with other methods answers 405 and names them in `Allow` (RFC 9110 section 15.5.6). */
  override setNotFoundHandler(notFound: RequestHandler): void {
    this.use((request: Request, response: Response, next: (error?: unknown) => void) => {
      const allowed = allowedMethods(this.getInstance(), request.path);
      if (allowed.length === 0) return notFound(request, response, next);
      response.setHeader('Allow', allowed.join(', '));
      next(new MethodNotAllowedException());
    });
  }
}

/** The headers that every answer carries (protocol §2.10), but for those its controller has set. */
function answerHeaders(response: ServerResponse, requestId: string, text: string): Record<string, string | number> {
  const headers: Record<string, string | number> = {
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestId,
    'Content-Length': Buffer.byteLength(text),
  };
  if (!response.hasHeader('Content-Type')) headers['Content-Type'] = 'application/json; charset=utf-8';
  if (!response.hasHeader('Cache-Control')) headers['Cache-Control'] = 'no-store';
  return headers;
}
