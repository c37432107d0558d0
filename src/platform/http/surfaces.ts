import { applyDecorators, Controller } from '@nestjs/common';

/**
 * The two addresses of the service (contract, section 1). A listener answers only the controllers of its own surface:
 * it puts the surface's name before the path of each request, and the controller's decorator puts it before its routes.
 * A controller that declares no surface is reachable on neither.
 */
export type Surface = 'public' | 'management';

const on = (surface: Surface, path: string | string[]) =>
  applyDecorators(Controller([path].flat().map((each) => `${surface}/${each}`)));

/** A controller that browsers, apps and services reach on PORT. */
export const PublicController = (path: string | string[]): ClassDecorator => on('public', path);

/** A controller that only the cluster reaches, on MANAGEMENT_PORT. */
export const ManagementController = (path: string | string[]): ClassDecorator => on('management', path);

/** Whether a route is one that a decorator above has made. */
export const isOnSurface = (route: string): boolean => /^\/(public|management)(\/|$)/.test(route);

/** What no target has (RFC 9112 section 3.2), and for which Express would read it otherwise: `\` as `/`, for one. */
const NOT_IN_TARGETS = /[#\xa0]/;

/** The request target a listener hands to the router; an absolute one (RFC 9112 section 3.2.2) loses its authority. */
export function targetOn(surface: Surface, target: string): string {
  if (NOT_IN_TARGETS.test(target)) return '/'; // nowhere
  if (target.startsWith('/')) return `/${surface}${target}`;
  if (!/^https?:\/\//i.test(target) || !URL.canParse(target)) return '/'; // nowhere
  const { pathname, search } = new URL(target);
  return `/${surface}${pathname}${search}`;
}

/** The patterns of routes as callers know them, by how the router knows them: as many as there are routes. */
const routes = new Map<string, string>();

/** The pattern of a route as callers know it; `none` for a request that found no route. */
export function routeOf(path: unknown): string {
  if (typeof path !== 'string') return 'none';
  const known = routes.get(path);
  if (known !== undefined) return known;
  const [, below = ''] = /^\/(?:public|management)(.*?)\/?$/.exec(path) ?? [];
  const route = below || '/';
  routes.set(path, route);
  return route;
}
