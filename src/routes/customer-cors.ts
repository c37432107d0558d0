import type { DiscoveryService } from '@nestjs/core';
import type { NextFunction, Request, Response } from 'express';
import { isCustomerRoute, pathOn } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { Registry } from '../registry/registry.js';
import { routesOf } from './declared-routes.js';

/** Pages of all clients' origins can read every response (protocol §2.9). `identifyClient` compares the client later. */
export function customerCors(registry: Registry, discovery: DiscoveryService) {
  let cookieRoutes: RegExp | undefined;
  return (request: Request, response: Response, next: NextFunction): void => {
    if (!isCustomerRoute(request.path)) return next();
    response.setHeader('Vary', 'Origin');
    const origin = request.headers.origin;
    const isKnown = origin !== undefined && registry.knowsOrigin(origin);
    if (isKnown) {
      response.setHeader('Access-Control-Allow-Origin', origin);
      cookieRoutes ??= cookieRoutesOf(discovery);
      if (cookieRoutes.test(request.path)) response.setHeader('Access-Control-Allow-Credentials', 'true');
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
    response.setHeader('X-Request-Id', requestContext.required().responseId);
    response.status(204).end();
  };
}

/** The paths, as a listener receives them, of the routes that read or set cookies. */
function cookieRoutesOf(discovery: DiscoveryService): RegExp {
  const routes = routesOf(discovery).filter(({ parameters }) => parameters.usesCookies);
  const patterns = routes.map(({ surface, path }) => pathOn(surface, path).split('/').map(patternOf).join('/'));
  return new RegExp(`^(${patterns.join('|')})/?$`);
}

/** A parameter matches each segment. Any other segment matches itself. */
function patternOf(segment: string): string {
  return segment.startsWith('{') ? '[^/]+' : segment.replace(/[^\w-]/g, '\\$&');
}
