import { RequestMethod, type Type } from '@nestjs/common';
import { GUARDS_METADATA, HTTP_CODE_METADATA, METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { type DiscoveryService, MetadataScanner, Reflector } from '@nestjs/core';
import { ApiInheritedRoutes, ApiRoute, type ApiRouteDescription } from '../../platform/http/api-route.js';
import { type DeclaredListener, listenersOf } from '../../platform/http/listener.decorators.js';
import { type RouteParameters, routeParametersOf } from '../../platform/http/route-parameters.js';

interface Handler {
  handler: () => unknown;
  controller: Type;
  handlerName: string;
}

/** A route as its decorators declare it. */
export interface Route extends Handler {
  listener: DeclaredListener;
  /** The path without the listener, with parameters as `{name}`: `/v2/customer/token`. */
  path: string;
  method: string;
  /** The status of a successful response. */
  status: number;
  guards: Type[];
  description: ApiRouteDescription;
  parameters: RouteParameters;
}

const reflector = new Reflector();

export function routesOf(discovery: DiscoveryService): Route[] {
  return controllersOf(discovery).flatMap(routesOfController);
}

export function controllersOf(discovery: DiscoveryService): Type[] {
  return discovery.getControllers().map(({ metatype }) => metatype as Type);
}

export function descriptionOf({ controller, handler, handlerName }: Handler): ApiRouteDescription | undefined {
  const declared = reflector.get(ApiRoute, handler) ?? reflector.get(ApiInheritedRoutes, controller)?.[handlerName];
  if (!declared) return undefined;
  const { body, form, query } = routeParametersOf(handler);
  return {
    ...(body && { body }),
    ...(form && { bodyFormats: ['json', 'form'] }),
    ...(query && { query }),
    ...declared,
  };
}

function routesOfController(controller: Type): Route[] {
  return new MetadataScanner().getAllMethodNames(controller.prototype).flatMap((handlerName) => {
    const handler = controller.prototype[handlerName];
    const method: RequestMethod | undefined = Reflect.getMetadata(METHOD_METADATA, handler);
    if (method === undefined) return []; // handles no route
    const guards = [controller, handler].flatMap((each): Type[] => Reflect.getMetadata(GUARDS_METADATA, each) ?? []);
    const defaultStatus = method === RequestMethod.POST ? 201 : 200;
    const status: number = Reflect.getMetadata(HTTP_CODE_METADATA, handler) ?? defaultStatus;
    return pathsOf(controller, handler).map(({ listener, path }) => {
      const description = descriptionOf({ controller, handler, handlerName }) ?? {
        summary: handlerName,
        response: '*/*',
      };
      return {
        listener,
        path: description.path ?? (path.replace(/:(\w+)/g, '{$1}') || '/'),
        method: RequestMethod[method].toLowerCase(),
        status,
        guards,
        description,
        parameters: routeParametersOf(handler),
        handler,
        controller,
        handlerName,
      };
    });
  });
}

/** The paths of a handler. A controller without a listener is reachable on neither port, so it has none. */
function pathsOf(controller: Type, handler: object): { listener: DeclaredListener; path: string }[] {
  const handlerPaths = pathsAt(handler);
  const joined = pathsAt(controller).flatMap((start) => handlerPaths.map((end) => `/${start}/${end}`));
  const paths = joined.map((path) => path.replace(/\/+/g, '/').replace(/\/$/, ''));
  return listenersOf(controller).flatMap((listener) => paths.map((path) => ({ listener, path })));
}

function pathsAt(decorated: object): string[] {
  return [Reflect.getMetadata(PATH_METADATA, decorated) ?? ''].flat();
}
