import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/internal';
import { DiscoveryService } from '@nestjs/core';
import { listenersOf } from '../../platform/http/listener.decorators.js';
import { GrantSettingsClasses } from '../../registry/grant-settings-classes.js';
import { isBearerGuard } from '../callers/bearer.guard.js';
import { OperatorGuard } from '../callers/operator.guard.js';
import { isCustomerRoute } from './customer-cors.js';
import { controllersOf, descriptionOf, type Route, routesOf } from './declared-routes.js';

/** The methods that the preflight response of a customer route allows (protocol §2.9). */
const CUSTOMER_METHODS = ['get', 'post', 'delete'];

/** A wrong declaration stops the start. */
@Injectable()
export class RouteChecks implements OnModuleInit, OnApplicationBootstrap {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly grants: GrantSettingsClasses,
  ) {}

  /** @throws Error that names the route and says what to change */
  onModuleInit(): void {
    for (const controller of controllersOf(this.discovery)) {
      if (listenersOf(controller).length === 0) {
        throw new Error(
          `${controller.name}: on no port; use @PublicController or @ManagementController instead of @Controller`,
        );
      }
    }
    const routes = routesOf(this.discovery);
    for (const route of routes) {
      const violation = violationOf(route);
      if (violation) throw new Error(`${nameOf(route)}: ${violation}`);
    }
    assertDistinct(routes);
  }

  /** All grants are known now. @throws Error that names the route and its grant */
  onApplicationBootstrap(): void {
    for (const route of routesOf(this.discovery)) {
      const { grant } = route.parameters;
      if (grant !== undefined && !this.grants.has(grant))
        throw new Error(`${nameOf(route)}: no grant has the name ${grant}; use the name in @GrantType`);
    }
  }
}

const nameOf = ({ controller, handlerName }: Route): string => `${controller.name}.${handlerName}`;

function violationOf(route: Route): string | undefined {
  const { listener, path, method, guards, status } = route;
  if (!descriptionOf(route)) return "has no description; add @ApiRoute({ summary: '…' })";
  if (isCustomerRoute(route) && !CUSTOMER_METHODS.includes(method)) {
    const name = method.toUpperCase();
    return `${name} is not possible on a customer route, because CORS allows GET, POST and DELETE; use one of these`;
  }
  if (listener === 'management' && /^\/admin(\/|$)/.test(path) && !guards.includes(OperatorGuard))
    return '/admin is for the operator; choose another path';
  if (status < 200 || status > 399) return `@HttpCode(${status}) is no status of a success; choose one from 200 to 399`;
  return violationOfParameters(route) ?? violationOfOrigin(route);
}

function violationOfParameters({ controller, handlerName }: Route): string | undefined {
  const nestKinds = Object.keys(Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, handlerName) ?? {});
  const uses = (kind: RouteParamtypes) => nestKinds.some((key) => key.startsWith(`${kind}:`));
  if (uses(RouteParamtypes.BODY)) return '@Body() does not read the body in this service; use @ValidatedBody(…)';
  if (uses(RouteParamtypes.QUERY)) return '@Query() does not validate; use @ValidatedQuery(…)';
  return undefined;
}

/** Pages send requests to customer routes, and to routes that read cookies. Such a route compares the Origin. */
function violationOfOrigin(route: Route): string | undefined {
  const { guards, parameters } = route;
  const { checksClient, checksOrigin, anyOrigin, usesCookies } = parameters;
  const isForPages = isCustomerRoute(route);
  if (checksClient || checksOrigin || (isForPages && guards.some(isBearerGuard)))
    return anyOrigin ? 'compares the Origin, so it does not admit every Origin; remove @AnyOrigin()' : undefined;
  if (usesCookies) return 'reads cookies, but checks no client and no Origin; add @ClientRequest(…) or @ClientQuery(…)';
  if (!isForPages || anyOrigin) return undefined;
  return (
    'checks no client and no Origin, as a customer route must; add @ClientRequest(…), @ClientQuery(…) or @Caller(…), ' +
    'or @AnyOrigin() if pages of every origin may read its responses'
  );
}

/** Two routes with the same method and path: only the route that the router gets first would be reachable. */
function assertDistinct(routes: Route[]): void {
  const byRequest = new Map<string, Route>();
  for (const route of routes) {
    const path = route.path.replace(/\{\w+\}/g, '{}').replace(/(?<=.)\/$/, '');
    const request = `${route.listener} ${route.method} ${path}`;
    const other = byRequest.get(request);
    if (other) {
      const both = [other, route].map(nameOf).sort().join(' and ');
      throw new Error(`${both}: two routes are ${route.method.toUpperCase()} ${route.path}; choose another path`);
    }
    byRequest.set(request, route);
  }
}
