import type { NextFunction, Request, Response } from 'express';
import { publicPath } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { Registry } from './registry.js';

/** All customer routes. The token routes and `forget` receive the identity cookies (protocol §4.1, §4.2, §4.13). */
const CUSTOMER_ROUTE = /^\/(v2\/)?customer(\/|$)/;
const ROUTE_WITH_COOKIES = /^\/v2\/customer\/(([^/]+\/[^/]+\/)?token|forget)\/?$/;

/**
 * CORS for the customer routes (protocol §2.9). A page of any client's origin can read every response, also error
 * responses. `Registry.clientCalling` later checks that the origin belongs to the client of the request.
 */
export function customerCors(registry: Registry) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const path = publicPath(request.path);
    if (path === undefined || !CUSTOMER_ROUTE.test(path)) return next();
    response.setHeader('Vary', 'Origin');
    const origin = request.headers.origin;
    const isKnown = origin !== undefined && registry.knowsOrigin(origin);
    if (isKnown) {
      response.setHeader('Access-Control-Allow-Origin', origin);
      if (ROUTE_WITH_COOKIES.test(path)) response.setHeader('Access-Control-Allow-Credentials', 'true');
    }
    if (request.method !== 'OPTIONS') return next();
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
