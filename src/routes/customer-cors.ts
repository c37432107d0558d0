import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { NextFunction, Request, Response } from 'express';
import { isCustomerRoute, pathOn } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { Registry } from '../registry/registry.js';
import { routesOf } from './declared-routes.js';

/**
 * CORS for the customer routes (protocol §2.9). A page of any client's origin can read every response, also error
 * responses. `Registry.clientCalling` later checks that the origin belongs to the client of the request.
 */
export function customerCors(registry: Registry, cookieRoutes: CookieRoutes) {
  return (request: Request, response: Response, next: NextFunction): void => {
    if (!isCustomerRoute(request.path)) return next();
    response.setHeader('Vary', 'Origin');
    const origin = request.headers.origin;
    const isKnown = origin !== undefined && registry.knowsOrigin(origin);
    if (isKnown) {
      response.setHeader('Access-Control-Allow-Origin', origin);
      if (cookieRoutes.includes(request.path)) response.setHeader('Access-Control-Allow-Credentials', 'true');
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

/** Knows the routes that read or set cookies, so that CORS allows credentials on them (protocol §2.9). */
@Injectable()
export class CookieRoutes {
  private pattern: RegExp | undefined;

  constructor(private readonly discovery: DiscoveryService) {}

  /** Whether the route of a path, as a listener has received the path, reads or sets cookies. */
  includes(path: string): boolean {
    this.pattern ??= this.build();
    return this.pattern.test(path);
  }

  private build(): RegExp {
    const routes = routesOf(this.discovery).filter(({ parameters }) => parameters.usesCookies);
    const patterns = routes.map(({ surface, path }) => pathOn(surface, path).split('/').map(patternOf).join('/'));
    return new RegExp(`^(${patterns.join('|')})/?$`);
  }
}

/** A parameter matches each segment. Any other segment matches itself. */
function patternOf(segment: string): string {
  return segment.startsWith('{') ? '[^/]+' : segment.replace(/[^\w-]/g, '\\$&');
}
