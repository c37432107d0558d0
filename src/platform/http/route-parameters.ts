import type { Type } from '@nestjs/common';

/** What the parameter decorators of a route read from a request (http/routes/parameter.decorators.ts). */
export interface RouteParameters {
  body?: Type<object>;
  form?: boolean;
  /** Whether `@ClientRequest` checks the client in the body, or `@ClientQuery` the client in the query. */
  checksClient?: 'body' | 'query';
  grant?: string;
  anyOrigin?: boolean;
  checksOrigin?: boolean;
  query?: Type<object>;
  /** Whether the route reads or sets cookies, so that CORS allows credentials. */
  usesCookies?: boolean;
}

const parametersByHandler = new WeakMap<object, RouteParameters>();

export function routeParametersOf(handler: object): RouteParameters {
  return parametersByHandler.get(handler) ?? {};
}

export function declareRouteParameters(controller: object, method: PropertyKey, read: RouteParameters): void {
  const handler: object = Reflect.get(controller, method);
  parametersByHandler.set(handler, { ...routeParametersOf(handler), ...read });
}

const declares = (read: RouteParameters) => (): MethodDecorator => (controller, method) =>
  declareRouteParameters(controller, method, read);

/** Declares that a route itself compares the `Origin`, with the client that its body names (protocol §2.8). */
export const ChecksOrigin = declares({ checksOrigin: true });

/**
 * Declares that a customer route admits pages of every origin, for example because its responses are public. The route
 * checks no client and reads no cookies (protocol §10.1).
 */
export const AnyOrigin = declares({ anyOrigin: true });

/** Declares that a route reads or sets cookies by itself. `@CallingBrowser` declares it too. */
export const UsesCookies = declares({ usesCookies: true });
