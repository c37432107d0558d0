import { afterEach, describe, expect, it } from 'vitest';
import { CustomerEntity } from '../../../src/customer/customer.entity.js';
import { defineExtension, type NewCustomer, OAuthError } from '../../../src/public/grant.js';
import { Browser } from '../../../src/session/browser.entity.js';
import { Session } from '../../../src/session/session.entity.js';
import { cookieBody, cookieHeader } from '../../support/cookie-grant.js';
import { deferred } from '../../support/deferred.js';
import { expectInvalidRequest } from '../../support/expect-error.js';
import { browserPartOf } from '../../support/identities.js';
import { ACME, ACME_ORIGIN, ACME_SITE, AT_RIVAL, RIVAL } from '../../support/test-registry.js';
import { useService } from '../../support/use-service.js';

const calls: NewCustomer[] = [];
/** What the extension does about the next new customers. */
let check: (request: NewCustomer) => void | Promise<void> = () => undefined;
afterEach(() => {
  calls.length = 0;
  check = () => undefined;
});

const extension = defineExtension({
  beforeNewCustomer: (request) => {
    calls.push(request);
    return check(request);
  },
});
const service = useService({ ...extension, environment: { TRUST_PROXY: '1' } });

const groupPath = `/v2/customer/${ACME}/sales/token`;
const refuse = () => {
  throw OAuthError.invalidRequest('captcha: missing');
};
const counts = () =>
  Promise.all([CustomerEntity, Browser, Session].map((entity) => service.rowsOf(entity as never).count()));

describe('beforeNewCustomer of an extension', () => {
  it('gets client, organization, group, parameters, Origin and network of the request', async () => {
    const parameters = { captcha: 'x', deep: { list: [1] } };
    for (const ip of ['2001:db8:1:2::1', '2001:db8:1:2::99', '2001:db8:1:3::1']) {
      const headers = { origin: ACME_ORIGIN, 'x-forwarded-for': ip };
      expect((await service.post(groupPath, cookieBody(parameters), headers)).status).toBe(200);
    }
    const networks = calls.map(({ network }) => network);
    expect(networks).toEqual([networks[0], networks[0], expect.not.stringContaining(networks[0] as string)]);
    const [call] = calls as [NewCustomer];
    expect([call.client.clientId, call.organization.id, call.groupId]).toEqual([ACME_SITE, ACME, 'sales']);
    expect(call.origin).toBe(ACME_ORIGIN);
    expect(call.parameters).toMatchObject({ client_id: ACME_SITE, ...parameters });
    await service.visit();
    expect([calls.at(-1)?.origin, calls.at(-1)?.groupId]).toEqual([undefined, '']);
  });

  it('refuses the customer of a new browser with its error, before anything is written', async () => {
    const before = await counts();
    for (const refusing of [refuse, async () => refuse()]) {
      check = refusing;
      expectInvalidRequest(await service.visit(), 'captcha: missing');
    }
    expect(await counts()).toEqual(before);
    expect(service.audit.filter(({ event }) => event === 'identity.created')).toEqual([]);
  });

  it('refuses the customer of a known browser in another organization and group, before anything is written', async () => {
    const cookie = cookieHeader(await service.visit());
    const before = await counts();
    check = refuse;
    expectInvalidRequest(await service.visit(cookie, AT_RIVAL), 'captcha: missing');
    expectInvalidRequest(await service.visit(cookie, {}, groupPath), 'captcha: missing');
    expect(calls.map(({ organization, groupId }) => [organization.id, groupId])).toEqual([
      [ACME, ''],
      [RIVAL, ''],
      [ACME, 'sales'],
    ]);
    expect(await counts()).toEqual(before);
    check = () => undefined;
    expect((await service.visit(cookie, AT_RIVAL)).status).toBe(200);
  });

  it('is not called for a browser that returns', async () => {
    const first = await service.visit();
    calls.length = 0;
    check = refuse;
    expect(await service.idOf(cookieHeader(first))).toBe(first.body.entity_id);
    expect(calls).toEqual([]);
  });

  it('is called for a browser whose customer was erased', async () => {
    const first = await service.visit();
    await service.erase(first.body.entity_id);
    check = refuse;
    expectInvalidRequest(await service.visit(cookieHeader(first)), 'captcha: missing');
  });

  it('is awaited before anything is written', async () => {
    const before = await counts();
    const [begun, ended] = [deferred(), deferred()];
    check = async () => {
      begun.resolve();
      await ended.promise;
    };
    const visit = service.visit();
    await Promise.race([begun.promise, visit]);
    expect(await counts()).toEqual(before);
    ended.resolve();
    expect((await visit).status).toBe(200);
    expect((await counts())[0]).toBe((before[0] as number) + 1);
  });

  it.each([
    ['the customer of another pair', {}, groupPath],
    ['a new customer of the browser of another pair', AT_RIVAL, undefined],
  ])('finds %s if the browser that was created last is forgotten meanwhile', async (_what, body, path) => {
    const earlier = await service.visit('', body, path);
    service.clock.advance({ milliseconds: 1 });
    const last = await service.visit();
    calls.length = 0;
    check = async () => {
      const organization = { client_id: ACME_SITE, organization_id: ACME };
      const cookie = cookieHeader(last);
      expect((await service.post('/v2/customer/forget', organization, { cookie })).status).toBe(200);
    };
    const visit = await service.visit(`${cookieHeader(earlier)}; ${cookieHeader(last)}`, {}, groupPath);
    expect(calls).toHaveLength(1);
    expect(browserPartOf(visit)).toBe(browserPartOf(earlier));
    expect(await service.idOf(cookieHeader(earlier), {}, groupPath)).toBe(visit.body.entity_id);
  });

  it('that fails otherwise gets 500, and nothing is written', async () => {
    const before = await counts();
    check = () => Promise.reject(new TypeError('no such property'));
    expect((await service.visit()).status).toBe(500);
    expect(await counts()).toEqual(before);
  });
});
