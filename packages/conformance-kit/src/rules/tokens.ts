import { CustomerService } from '@customer-authorization/service/grant';
import type { GrantMetadata } from '@customer-authorization/service/testing-host';
import type { GrantRule } from '../grant-subject.js';
import { withoutDatabase } from '../race.js';
import { type Method, replaceMethod, thenRestore } from '../replace-method.js';

/** The response to a valid token request, beyond its success. */
export function tokenRules({ groups }: GrantMetadata): GrantRule[] {
  return [IN_OUTAGE, COOKIES, ...(groups ? [IN_GROUP] : [])];
}

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

const IN_GROUP: GrantRule = {
  title: 'gives a customer of the group, because it declares `groups`',
  async check(subject) {
    const path = `/v2/customer/${subject.environment.organizationId}/sales/token`;
    await subject.expectSuccess({ ...(await subject.create()), path, route: path });
  },
};
