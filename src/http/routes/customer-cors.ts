import type { NextFunction, Request, Response } from 'express';
import type { ListenerName } from '../../platform/http/listener.decorators.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { Registry } from '../../registry/registry.js';
import type { RoutePatterns } from './route-patterns.js';

const CUSTOMER_ROUTE = /^\/(v2\/)?customer(\/|$)/;

/** A customer route (protocol §2.1). */
export const isCustomerRoute = ({ listener, path }: { listener: ListenerName; path: string }): boolean =>
  listener === 'public' && CUSTOMER_ROUTE.test(path);

/**
 * Pages of all clients' origins can read every response (protocol §2.9). The endpoint compares the client later.
 * @internal
 */
export function customerCors(registry: Registry, routes: RoutePatterns) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const { listener, responseId } = requestContext.required();
    if (!isCustomerRoute({ listener, path: request.path })) return next();
    response.setHeader('Vary', 'Origin');
    const origin = request.headers.origin;
    const isKnown = origin !== undefined && registry.knowsOrigin(origin);
    if (isKnown) {
      response.setHeader('Access-Control-Allow-Origin', origin);
      if (routes.useCookies(request.path)) response.setHeader('Access-Control-Allow-Credentials', 'true');
    }
    if (request.method !== 'OPTIONS') {
      if (isKnown) response.setHeader('Access-Control-Expose-Headers', 'X-Request-Id, Retry-After');
      return next();
    }
    if (isKnown) {
      response.setHeader('Access-Control-Allow-Methods', 'POST, GET, DELETE');
      response.setHeader('Access-Control-Allow-Headers', 'content-type, authorization');
      response.setHeader('Access-Control-Max-Age', '600');
    }
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    response.setHeader('X-Request-Id', responseId);
    response.status(204).end();
  };
}
