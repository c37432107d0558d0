import { RequestMethod, type Type } from '@nestjs/common';
import { GUARDS_METADATA, HTTP_CODE_METADATA, METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { type DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import { ApiRoute, type ApiRouteDescription } from '../platform/http/api-route.js';
import { type Surface, splitSurface } from '../platform/http/surfaces.js';

/** A route as its decorators declare it. */
export interface Route {
  surface: Surface;
  /** The path without the surface, with parameters as `{name}`: `/v2/customer/token`. */
  path: string;
  /** The HTTP method in lower case. */
  method: string;
  /** The status of a successful response. */
  status: number;
  guards: Type[];
  description: ApiRouteDescription;
  handler: () => unknown;
}

const reflector = new Reflector();

/** The routes of all controllers that one of the two ports serves. */
export function routesOf(discovery: DiscoveryService): Route[] {
  return discovery.getControllers().flatMap(({ metatype }) => routesOfController(metatype as Type));
}

function routesOfController(controller: Type): Route[] {
  const names = new MetadataScanner().getAllMethodNames(controller.prototype);
  return names.flatMap((name) => {
    const handler = controller.prototype[name];
    const method: RequestMethod | undefined = Reflect.getMetadata(METHOD_METADATA, handler);
    if (method === undefined) return [];
    const guards = [controller, handler].flatMap((each): Type[] => Reflect.getMetadata(GUARDS_METADATA, each) ?? []);
    const defaultStatus = method === RequestMethod.POST ? 201 : 200;
    const status: number = Reflect.getMetadata(HTTP_CODE_METADATA, handler) ?? defaultStatus;
    return pathsOf(controller, handler).map(({ surface, path }) => {
      const description = reflector.get(ApiRoute, handler) ?? { summary: name, response: '*/*' };
      return {
        surface,
        path: path.replace(/:(\w+)/g, '{$1}') || '/',
        method: RequestMethod[method].toLowerCase(),
        status,
        guards,
        description,
        handler,
      };
    });
  });
}

/** The paths of a handler. A controller without a surface is reachable on neither port, so it has none. */
function pathsOf(controller: Type, handler: object): { surface: Surface; path: string }[] {
  const controllerPaths = pathsAt(controller);
  const handlerPaths = pathsAt(handler);
  const joined = controllerPaths.flatMap((start) => handlerPaths.map((end) => `/${start}/${end}`));
  return joined.flatMap((path) => splitSurface(path.replace(/\/+/g, '/').replace(/\/$/, '')) ?? []);
}

function pathsAt(decorated: object): string[] {
  return [Reflect.getMetadata(PATH_METADATA, decorated) ?? ''].flat();
}
