import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { pathOn } from '../platform/http/surfaces.js';
import { routesOf } from './declared-routes.js';

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
