import type { ServerResponse } from 'node:http';
import { MethodNotAllowedException } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express/adapters/express-adapter.js'; // without multer
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import type { Configuration } from '../configuration/configuration.js';
import { requestContext } from '../request-context/request-context.js';
import type { DeclaredListener, ListenerName } from './listener.decorators.js';

/** Express without etags, `X-Powered-By` and body parsers. All controllers' responses are written here. */
export class ServiceHttpAdapter extends ExpressAdapter {
  /** The methods of the routes that match a path of a listener. The application sets it when it knows its routes. */
  methodsAt: (listener: DeclaredListener, path: string) => string[] = () => [];

  constructor(private readonly configuration: Configuration) {
    const application = express();
    const { TRUST_PROXY: proxies } = configuration;
    if (proxies !== undefined) application.set('trust proxy', /^\d+$/.test(proxies) ? Number(proxies) : proxies);
    application.disable('x-powered-by');
    application.disable('etag');
    application.set('query parser', false); // oauth/form.ts reads queries, and rejects repeated parameters
    application.enable('case sensitive routing');
    super(application);
  }

  /**
   * Nest compares it with the `host` of each controller (listener.decorators.ts). The header `Host` names no listener.
   */
  override getRequestHostname({ path }: Request): string {
    return servedListener(requestContext.required().listener, path, this.configuration) ?? '';
  }

  override reply(response: Response, body: unknown, statusCode = response.statusCode): void {
    const { responseId } = requestContext.required();
    if (hasNoContent(statusCode))
      return void response.writeHead(statusCode, emptyHeaders(response, responseId, statusCode)).end();
    const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
    response.writeHead(statusCode, responseHeaders(response, responseId, text));
    response.end(response.req.method === 'HEAD' ? undefined : text);
  }

  /** A path with other methods gets 405 (RFC 9110 §15.5.6, protocol §2.3). */
  override setNotFoundHandler(notFound: RequestHandler): void {
    this.use((request: Request, response: Response, next: NextFunction) => {
      request.route = undefined; // Express has set the routes of other listeners that Nest has skipped
      const listener = this.getRequestHostname(request);
      const methods = listener === '' ? [] : this.methodsAt(listener as DeclaredListener, request.path);
      if (methods.length === 0) return notFound(request, response, next);
      // Express serves HEAD by the route of GET
      const allowed = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
      response.setHeader('Allow', [...new Set(allowed)].join(', '));
      next(new MethodNotAllowedException());
    });
  }
}

const ADMIN_ROUTE = /^\/admin(\/|$)/;
const TRY_IT_ROUTE = /^\/try(\/|$)/;

/**
 * The listener whose controllers serve a path at a port (protocol §1.5). `undefined` if the port serves nothing there:
 *
 * - without an admin token the admin API does not exist (protocol §9.1)
 * - without TRY_IT the public port has no pages that try the service (protocol §11)
 */
export function servedListener(
  port: ListenerName,
  path: string,
  configuration: Configuration,
): DeclaredListener | undefined {
  if (port === 'public') return configuration.TRY_IT || !TRY_IT_ROUTE.test(path) ? 'public' : undefined;
  const isAdmin = ADMIN_ROUTE.test(path);
  if (isAdmin && !configuration.hasAdminTokens) return undefined;
  const serving = isAdmin && configuration.ADMIN_PORT !== undefined ? 'admin' : 'management';
  return port === serving ? 'management' : undefined;
}

/** Whether a response with this status has no content (RFC 9110 §15.3.5, §15.3.6 and §15.4.5). */
export const hasNoContent = (status: number): boolean => [204, 205, 304].includes(status);

const OF_CONTENT = /^content-(type|length|encoding|language|range|disposition)$/;

type Headers = Record<string, string | number>;

/** The headers of every response (protocol §2.10), except those that its controller has set. */
function responseHeaders(response: ServerResponse, requestId: string, text: string): Headers {
  const headers = commonHeaders(response, requestId);
  headers['Content-Length'] = Buffer.byteLength(text);
  if (!response.hasHeader('Content-Type')) headers['Content-Type'] = 'application/json; charset=utf-8';
  return headers;
}

/** Removes the headers of content that the controller has set. */
function emptyHeaders(response: ServerResponse, requestId: string, status: number): Headers {
  for (const name of response.getHeaderNames()) if (OF_CONTENT.test(name)) response.removeHeader(name);
  // a 205 is the only one that has a length, or else an empty chunk
  return { ...commonHeaders(response, requestId), ...(status === 205 && { 'Content-Length': 0 }) };
}

function commonHeaders(response: ServerResponse, requestId: string): Headers {
  const headers: Headers = { 'X-Content-Type-Options': 'nosniff', 'X-Request-Id': requestId };
  if (!response.hasHeader('Cache-Control')) headers['Cache-Control'] = 'no-store';
  return headers;
}
