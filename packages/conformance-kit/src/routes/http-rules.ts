import { declaredProperties } from 'customer-authorization-service/testing-host';
import { request } from '../http-client.js';
import { ORIGIN } from '../kit-registry.js';
import { propertiesOf } from '../rules/openapi.js';
import type { RouteRule } from './route-test-context.js';

const EVIL_ORIGIN = 'https://evil.example';

/** Responses, CORS and the OpenAPI document. */
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
    title: 'admits only registered origins to a preflight request and to the response',
    async check(context) {
      const { environment, route } = context;
      const asked = { 'access-control-request-method': route.method.toUpperCase() };
      const admittedFor = async (origin: string) => {
        const sent = await context.valid();
        const responses = [
          await environment.service.send('OPTIONS', sent.path, { origin, ...asked }),
          await context.send({ ...sent, headers: { ...sent.headers, origin } }),
        ];
        return responses.map(({ headers }) => headers.get('access-control-allow-origin'));
      };
      const expected = route.path.startsWith('/v2/customer/') ? ORIGIN : null;
      const own = await admittedFor(ORIGIN);
      if (own.some((each) => each !== expected)) throw new Error(`${ORIGIN}: Access-Control-Allow-Origin is ${own}`);
      if ((await admittedFor(EVIL_ORIGIN)).some((each) => each !== null))
        throw new Error(`${EVIL_ORIGIN}: has Access-Control-Allow-Origin`);
    },
  },
];
