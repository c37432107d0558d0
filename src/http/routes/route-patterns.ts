import type { DiscoveryService } from '@nestjs/core';
import type { DeclaredListener } from '../../platform/http/listener.decorators.js';
import { type Route, routesOf } from './declared-routes.js';

/** Which routes match the path of a request, for what is decided apart from the route that handles it. */
export class RoutePatterns {
  private cookieRoutes: RegExp | undefined;
  private readonly listeners = new Map<DeclaredListener, { method: string; pattern: RegExp }[]>();

  constructor(private readonly discovery: DiscoveryService) {}

  /** The methods of all routes at this path. */
  methodsAt(listener: DeclaredListener, path: string): string[] {
    const routes = this.listeners.get(listener) ?? this.routesOn(listener);
    this.listeners.set(listener, routes);
    return routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method);
  }

  private routesOn(listener: DeclaredListener): { method: string; pattern: RegExp }[] {
    const routes = routesOf(this.discovery).filter((route) => route.listener === listener);
    return routes.map((route) => ({ method: route.method.toUpperCase(), pattern: patternOf([route]) }));
  }

  /** Whether a customer route at this path reads or sets cookies. */
  useCookies(path: string): boolean {
    this.cookieRoutes ??= patternOf(routesOf(this.discovery).filter(({ parameters }) => parameters.usesCookies));
    return this.cookieRoutes.test(path);
  }
}

function patternOf(routes: Route[]): RegExp {
  const patterns = routes.map(({ path }) => {
    const withoutLastSlash = path.replace(/(?<=.)\/$/, '');
    return withoutLastSlash.split('/').map(patternOfSegment).join('/');
  });
  return new RegExp(`^(${patterns.join('|')})/?$`);
}

/** A parameter matches each text within a segment. Any other text matches itself. */
function patternOfSegment(segment: string): string {
  if (segment.startsWith('*')) return '.+'; // a wildcard
  const texts = segment.split(/\{.*?\}/);
  return texts.map((text) => text.replace(/[^\w-]/g, '\\$&')).join('[^/]+');
}
