import { declaredProperties, isCustomerRoute, pathOn, type Route } from 'customer-authorization-service/testing-host';
import { about } from '../cases.js';
import { FOREIGN_ORIGIN, FOREIGN_SITE, UNLISTED_SITE } from '../kit-registry.js';
import type { SentRequest } from './request-texts.js';
import type { RouteRule, RouteTestContext } from './route-test-context.js';

export const UNKNOWN_CLIENT = 'kit-unknown-client';

/** The `Origin`, and the client in the body or the query (protocol §2.8). Other routes satisfy these rules. */
export const routeClientRules: RouteRule[] = [
  {
    title: "refuses an Origin that is not one of the client's",
    async check(context) {
      if (!comparesOrigin(context.route)) return;
      for (const origin of ['https://evil.example', FOREIGN_ORIGIN, 'null']) {
        const sent = await context.valid();
        const headers = { ...sent.headers, origin };
        await about(origin, () => context.expectError([400], { ...sent, headers }, /^Origin: /));
      }
    },
  },
  {
    title: 'refuses an unknown client',
    async check(context) {
      if (!declares(context.route, 'client_id')) return;
      const sent = withClient(context.route, await context.valid(), UNKNOWN_CLIENT);
      await context.expectError([400], sent, /^client_id: /);
    },
  },
  {
    title: 'refuses a client that the organization of the request does not admit',
    async check(context) {
      const { route, kit } = context;
      const hasOrganization = declares(route, 'organization_id') || kit.callers.length > 0;
      if (!declares(route, 'client_id') || !hasOrganization) return;
      await context.expectError([400], withClient(route, await validWithoutOrigin(context), FOREIGN_SITE));
    },
  },
];

/** Only if the extension has a grant of which a route is a part: such a route declares the grant. */
export const UNLISTED_CLIENT: RouteRule = {
  title: 'refuses a client that may not use the grant of the extension',
  async check(context) {
    const { route } = context;
    const { checksClient, grant } = route.parameters;
    if (checksClient === undefined || context.kit.callers.length > 0) return;
    if (grant === undefined)
      throw new Error(
        "declares no grant; add { grant: '…' } to @ClientRequest, or declare anyClient: true in the test",
      );
    const sent = withClient(route, await validWithoutOrigin(context), UNLISTED_SITE);
    const response = await context.expectError([400], sent, /^client_id: may not use the grant /);
    if (response.body.error !== 'unauthorized_client') throw new Error(`error ${response.body.error}`);
  },
};

/** Customer routes compare the `Origin`, and so does every route that checks a client. */
function comparesOrigin({ surface, path, parameters: { checksClient, anyOrigin } }: Route): boolean {
  return checksClient !== undefined || (isCustomerRoute(pathOn(surface, path)) && !anyOrigin);
}

function declares({ parameters: { body, query } }: Route, name: string): boolean {
  return [body, query].some((type) => type && declaredProperties(type).includes(name));
}

function withClient({ parameters: { query } }: Route, sent: SentRequest, clientId: string): SentRequest {
  const isInQuery = query && declaredProperties(query).includes('client_id');
  if (!isInQuery) return { ...sent, body: { ...(sent.body as object), client_id: clientId } };
  const { pathname, searchParams } = new URL(sent.path, 'http://kit');
  searchParams.set('client_id', clientId);
  return { ...sent, path: `${pathname}?${searchParams}` };
}

/** Without an `Origin`, which would be refused before the organization is compared. */
async function validWithoutOrigin(context: RouteTestContext): Promise<SentRequest> {
  const sent = await context.valid();
  const headers = Object.entries(sent.headers).filter(([name]) => name.toLowerCase() !== 'origin');
  return { ...sent, headers: Object.fromEntries(headers) };
}
