import { CustomerService } from '@customer-authorization/service/grant';
import type { GrantMetadata } from '@customer-authorization/service/testing-host';
import type { GrantRule } from '../grant-subject.js';
import { BARE_SITE, OWN_ORGANIZATION } from '../kit-registry.js';
import { withoutDatabase } from '../race.js';
import { withHeaders, withParameter } from '../request.js';
import { type Method, replaceMethod, thenRestore } from '../shared-patch.js';

/** The response to a valid token request. */
export function tokenRules({ settings, groups }: GrantMetadata): GrantRule[] {
  return [VALID, IN_OUTAGE, COOKIES, ...(settings ? [WITHOUT_SETTINGS] : []), ...(groups ? [CUSTOMER_OF_GROUP] : [])];
}

const VALID: GrantRule = {
  title: 'gives a token for a valid request, as the OpenAPI document describes',
  check: async (subject) => subject.expectSuccess(await subject.create()),
};

const IN_OUTAGE: GrantRule = {
  title: 'does not respond with invalid_grant to a valid request while the database is unavailable',
  async check(subject) {
    const { path, body, headers } = await subject.create();
    const response = await withoutDatabase(subject.service, () => subject.service.post(path, body, headers));
    if (response.body?.error !== 'invalid_grant') return;
    throw new Error(`let each error of \`Database\` pass, so that the response is 503\nresponse: ${response.text}`);
  },
};

const COOKIES: GrantRule = {
  title: 'sets the identity cookies of the browser whose customer it finds or creates',
  async check(subject) {
    const sent = await subject.create();
    const customers = subject.service.application.get(CustomerService);
    let found = false;
    const noting =
      (find: Method): Method =>
      (...parameters) => {
        found = true;
        return find(...parameters);
      };
    const restore = replaceMethod(customers, 'findOrCreateForBrowser', noting);
    const { cookies } = await thenRestore([restore], () => subject.expectSuccess(sent));
    if (found && cookies.length === 0)
      throw new Error('call `browser.setCookie` for each of `IdentityCookies.setCookieLines`');
  },
};

const WITHOUT_SETTINGS: GrantRule = {
  title: 'responds by the protocol to a client without settings in the registry',
  check: async (subject) => subject.send(withParameter(await subject.create(), 'client_id', BARE_SITE)),
};

const CUSTOMER_OF_GROUP: GrantRule = {
  title: 'gives each group a customer of its own, because it declares `groups`',
  async check(subject) {
    const { cookie } = await subject.environment.newCustomer();
    const customers = new Set<string>();
    for (const group of ['/sales', '/support']) {
      const sent = withHeaders(await subject.create(), { cookie });
      const path = `/v2/customer/${OWN_ORGANIZATION}${group}/token`;
      customers.add((await subject.expectSuccess({ ...sent, path, route: path })).body.entity_id);
    }
    if (customers.size < 2)
      throw new Error('one customer in two groups; find or create it in `groupId` of the request');
  },
};
