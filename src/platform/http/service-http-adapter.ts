import type { ServerResponse } from 'node:http';
import { MethodNotAllowedException } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { Express } from 'express';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { type RouteLayer, routeLayers } from '../private-members.js';
import { requestContext } from '../request-context/request-context.js';

/** Express without etags, `X-Powered-By` and body parsers. All controllers' responses are written here. */
export class ServiceHttpAdapter extends ExpressAdapter {
  /** @param mountedAs the path at which the router gets a controller's route; `undefined` if no port serves it */
  constructor(trustProxy: string | undefined, mountedAs: (route: string) => string | undefined) {
    const application = express();
    if (trustProxy !== undefined)
      application.set('trust proxy', /^\d+$/.test(trustProxy) ? Number(trustProxy) : trustProxy);
    application.disable('x-powered-by');
    application.disable('etag');
    application.set('query parser', false); // oauth/form.ts reads queries, and rejects repeated parameters
    application.enable('case sensitive routing');
    const route = application.route.bind(application);
    const unmounted = express.Router();
    application.route = (path: string) => {
      const mounted = mountedAs(path);
      return mounted === undefined ? unmounted.route(path) : route(mounted);
    };
    super(application);
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
    this.use((request: Request, response: Response, next: (error?: unknown) => void) => {
      const allowed = allowedMethods(this.getInstance(), request.path);
      if (allowed.length === 0) return notFound(request, response, next);
      response.setHeader('Allow', allowed.join(', '));
      next(new MethodNotAllowedException());
    });
  }
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

function allowedMethods(application: Express, path: string): string[] {
  const methods = routeLayers(application)
    .filter((layer) => layer.route !== undefined && matches(layer, path))
    .flatMap((layer) => Object.keys(layer.route?.methods ?? {}))
    .flatMap((method) => (method === 'get' ? ['get', 'head'] : [method])); // Express serves HEAD by the route of GET
  return [...new Set(methods)].map((method) => method.toUpperCase());
}

function matches(layer: RouteLayer, path: string): boolean {
  try {
    return Boolean(layer.match(path));
  } catch {
    return false; // a path with invalid percent-encoding matches no route
  }
}
