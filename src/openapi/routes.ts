import { RequestMethod, type Type } from '@nestjs/common';
import { GUARDS_METADATA, HTTP_CODE_METADATA, METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { type DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import { ApiRoute, type ApiRouteDescription } from '../platform/http/api-route.js';
import { type Surface, splitSurface } from '../platform/http/surfaces.js';

/** A route as its decorators declare it. */
export interface Route {
  surface: Surface;
  /** Without the surface: `/v2/customer/token`, parameters as `{name}`. */
  address: string;
  /** In lower case. */
  method: string;
  /** Status of the answer when all is well. */
  status: number;
  guards: Type[];
  description: ApiRouteDescription;
  handler: () => unknown;
}

const reflector = new Reflector();

/** The routes of all controllers that a listener answers. */
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
    const byDefault = method === RequestMethod.POST ? 201 : 200;
    const status: number = Reflect.getMetadata(HTTP_CODE_METADATA, handler) ?? byDefault;
    return pathsOf(controller, handler).map(({ surface, path }) => {
      const address = path.replace(/:(\w+)/g, '{$1}') || '/';
      const description = reflector.get(ApiRoute, handler) ?? { summary: name, response: '*/*' };
      return {
        surface,
        address,
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
  const above = pathsAt(controller);
  const below = pathsAt(handler);
  const joined = above.flatMap((start) => below.map((end) => `/${start}/${end}`));
  return joined.flatMap((path) => splitSurface(path.replace(/\/+/g, '/').replace(/\/$/, '')) ?? []);
}

function pathsAt(decorated: object): string[] {
  return [Reflect.getMetadata(PATH_METADATA, decorated) ?? ''].flat();
}
