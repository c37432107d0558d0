import type { NextFunction, Request, Response } from 'express';
import { publicPath } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { Registry } from './registry.js';

/**
 * The customer routes, and among them the token routes of protocol §4.1 and §4.2, which receive the identity cookies.
 */
const CUSTOMER_ROUTE = /^\/(v2\/)?customer(\/|$)/;
const TOKEN_ROUTE = /^\/v2\/customer\/([^/]+\/[^/]+\/)?token\/?$/;

/**
 * CORS for the customer addresses (protocol §2.9): an origin that some client may use reads every answer, errors
 * too. Whether it is the asked client's origin is checked where the client is known.
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
      if (TOKEN_ROUTE.test(path)) response.setHeader('Access-Control-Allow-Credentials', 'true');
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
