import type { NextFunction, Request, Response } from 'express';
import { publicPath } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { Registry } from './registry.js';

const CUSTOMER_ROUTE = /^\/(v2\/)?customer(\/|$)/;

/** Whether the path of a request, as a listener has received it, is that of a customer route (protocol §2.1). */
export function isCustomerRoute(path: string): boolean {
  return CUSTOMER_ROUTE.test(publicPath(path) ?? '');
}

/**
 * CORS for the customer routes (protocol §2.9). A page of any client's origin can read every response, also error
 * responses. `Registry.clientCalling` later checks that the origin belongs to the client of the request.
 *
 * @param usesCookies whether the route of a path reads or sets cookies
 */
export function customerCors(registry: Registry, usesCookies: (path: string) => boolean) {
  return (request: Request, response: Response, next: NextFunction): void => {
    if (!isCustomerRoute(request.path)) return next();
    response.setHeader('Vary', 'Origin');
    const origin = request.headers.origin;
    const isKnown = origin !== undefined && registry.knowsOrigin(origin);
    if (isKnown) {
      response.setHeader('Access-Control-Allow-Origin', origin);
      if (usesCookies(request.path)) response.setHeader('Access-Control-Allow-Credentials', 'true');
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
    response.setHeader('X-Request-Id', requestContext.required().id);
    response.status(204).end();
  };
}
