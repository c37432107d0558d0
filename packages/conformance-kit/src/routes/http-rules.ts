import { DiscoveryService } from '@nestjs/core';
import { declaredProperties, routesOf } from 'customer-authorization-service/testing-host';
import { request } from '../http-client.js';
import { ORIGIN } from '../kit-registry.js';
import { propertiesOf } from '../openapi-properties.js';
import type { RouteRule, RouteTestContext } from './route-test-context.js';

const EVIL_ORIGIN = 'https://evil.example';

/** Responses, methods, CORS and the OpenAPI document. */
export const routeHttpRules: RouteRule[] = [
  {
    title: 'responds to a valid request with success, as the OpenAPI document describes',
    async check(context) {
      await context.expectSuccess(await context.valid());
    },
  },
  {
    title: 'is in the OpenAPI document of the public port, with its parameters',
    async check({ environment, route, bodySchema }) {
      const { body: document } = await request(`${environment.service.url}/openapi.json`, {});
      const operation = document.paths[route.path]?.[route.method];
      if (!operation?.summary) throw new Error('no description; add @ApiRoute({ summary: … })');
      const described = propertiesOf(operation.requestBody, document.components.schemas);
      const names = bodySchema ? declaredProperties(bodySchema.body) : [];
      const missing = names.filter((name) => !described.includes(name));
      if (missing.length > 0) throw new Error(`not in the OpenAPI document: ${missing}`);
    },
  },
  {
    title: 'responds with 405 and Allow to another method',
    async check(context) {
      const methods = methodsOf(context);
      const method = ['DELETE', 'GET', 'PUT'].find((each) => !methods.includes(each)) as string;
      const sent = await context.valid();
      const { headers } = await context.expectError({ status: 405 }, { ...sent, method, body: undefined });
      const allowed = headers.get('allow') ?? '';
      if (methods.some((each) => !allowed.includes(each))) throw new Error(`Allow: ${allowed}`);
    },
  },
  {
    title: 'admits only registered origins to a preflight request and to the response',
    async check(context) {
      const sent = await context.valid();
      const isCustomerRoute = context.route.path.startsWith('/v2/customer/');
      const asked = { 'access-control-request-method': context.route.method.toUpperCase() };
      const preflight = (origin: string) =>
        context.environment.service.send('OPTIONS', sent.path, { origin, ...asked });
      const own = [
        await preflight(ORIGIN),
        await context.send({ ...sent, headers: { ...sent.headers, origin: ORIGIN } }),
      ];
      const evil = await context.valid();
      const foreign = [
        await preflight(EVIL_ORIGIN),
        await context.send({ ...evil, headers: { ...evil.headers, origin: EVIL_ORIGIN } }),
      ];
      const admitted = (headers: Headers) => headers.get('access-control-allow-origin');
      if (own.some(({ headers }) => admitted(headers) !== (isCustomerRoute ? ORIGIN : null)))
        throw new Error(`${ORIGIN}: Access-Control-Allow-Origin is ${own.map(({ headers }) => admitted(headers))}`);
      if (foreign.some(({ headers }) => admitted(headers) !== null))
        throw new Error(`${EVIL_ORIGIN}: has Access-Control-Allow-Origin`);
    },
  },
];

/** The methods of the route's path, in upper case. */
function methodsOf({ environment, route }: RouteTestContext): string[] {
  const all = routesOf(environment.service.application.get(DiscoveryService, { strict: false }));
  return all.filter(({ path }) => path === route.path).map(({ method }) => method.toUpperCase());
}
