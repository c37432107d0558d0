import { declaredProperties, isCustomerRoute, type Route } from 'customer-authorization-service/testing-host';
import { FOREIGN_ORIGIN, FOREIGN_SITE, UNLISTED_SITE } from '../kit-registry.js';
import type { Change } from '../token-request.js';
import type { RouteRule } from './route-test-context.js';

export const UNKNOWN_CLIENT = 'kit-unknown-client';

/** The `Origin`, and the client in the body or the query (protocol §2.8). Other routes satisfy these rules. */
export const routeClientRules: RouteRule[] = [
  {
    title: "refuses an Origin that is not one of the client's",
    async check(context) {
      if (!comparesOrigin(context.route)) return;
      const others = ['https://evil.example', FOREIGN_ORIGIN, 'null'];
      await context.refusesEach(others, { hint: /^Origin: / }, (origin) => ({ headers: { origin } }));
    },
  },
  {
    title: 'refuses an unknown client',
    async check(context) {
      if (declares(context.route, 'client_id')) await context.refuses({ hint: /^client_id: / }, as(UNKNOWN_CLIENT));
    },
  },
  {
    title: 'refuses a client that the organization of the request does not admit',
    async check(context) {
      const { route, kit } = context;
      const hasOrganization = declares(route, 'organization_id') || kit.callers.length > 0;
      if (declares(route, 'client_id') && hasOrganization) await context.refuses({}, as(FOREIGN_SITE));
    },
  },
];

/** A request of another client, without an `Origin`, which would be refused before the organization is compared. */
const as = (client_id: string): Change => ({ parameters: { client_id }, headers: { origin: undefined } });

/** Only if the extension has a grant of which a route is a part: such a route declares the grant. */
export const UNLISTED_CLIENT: RouteRule = {
  title: 'refuses a client that may not use the grant of the extension',
  async check(context) {
    const { checksClient, grant } = context.route.parameters;
    if (checksClient === undefined) return;
    const solution = "add { grant: '…' } to @ClientRequest, or declare anyClient: true in the test";
    if (grant === undefined) throw new Error(`declares no grant; ${solution}`);
    const expected = { error: 'unauthorized_client', hint: /^client_id: may not use the grant / };
    await context.refuses(expected, as(UNLISTED_SITE));
  },
};

/** Customer routes compare the `Origin`, and so does every route that checks a client. */
function comparesOrigin(route: Route): boolean {
  const { checksClient, anyOrigin } = route.parameters;
  return checksClient !== undefined || (isCustomerRoute(route) && !anyOrigin);
}

function declares({ parameters: { body, query } }: Route, name: string): boolean {
  return [body, query].some((type) => type && declaredProperties(type).includes(name));
}
