import { CustomerService } from 'customer-authorization-service/grant';
import type { RuleSet } from '../grant-test-context.js';
import { withoutDatabase } from '../race.js';
import { type Method, replaceMethod, thenRestore } from '../shared-patch.js';
import { TOKEN } from '../test-environment.js';

/**
 * The response to a token request. `ResponseChecks` verifies each token by the JWKS, and makes most of the checks. The
 * endpoint writes audit events and metrics, so no grant can omit them.
 */
export const responseRules: RuleSet = () => [
  {
    title: 'gives a token for a valid request, in a response with exactly the declared fields',
    check: async (context) => void (await context.expectToken(await context.body())),
  },
  {
    title: 'does not respond with invalid_grant to a valid request while the database is unavailable',
    async check(context) {
      const [parameters, headers] = [await context.body(), await context.callerHeaders()];
      const { service } = context.environment;
      const { body, text } = await withoutDatabase(service, () => service.post(TOKEN, parameters, headers));
      if (body?.error !== 'invalid_grant') return;
      throw new Error(`let each error of \`Database\` pass, so that the response is 503\nresponse: ${text}`);
    },
  },
  {
    title: 'sets the identity cookies of the browser whose customer it finds or creates',
    async check(context) {
      const parameters = await context.body();
      const customers = context.environment.service.application.get(CustomerService);
      let found = false;
      const noting =
        (find: Method): Method =>
        (...scope) => {
          found = true;
          return find(...scope);
        };
      const restore = replaceMethod(customers, 'findOrCreateForBrowser', noting);
      const { cookies } = await thenRestore([restore], () => context.expectToken(parameters));
      if (found && cookies.length === 0)
        throw new Error('call `browser.setCookie` for each of `IdentityCookies.setCookieLines`');
    },
  },
];
