import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { partsOf } from '../../src/identity/identity-cookies.js';
import { LinkAncestor } from '../../src/identity/link-ancestor.entity.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { secretOf } from '../support/identities.js';
import { manage } from '../support/management-api.js';
import { rememberedPair, rememberingRegistry } from '../support/remember.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL } from '../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../support/test-service.js';
import { infoStatus } from '../support/transfers.js';

const ADMIN_TOKEN = 'operator-of-customer-browsers';
const AT_RIVAL = { client_id: PUBLIC_SITE, organization_id: RIVAL };

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ registry: rememberingRegistry(), environment: { ADMIN_TOKEN } });
});
afterEach(() => service.clock.reset());
afterAll(() => service?.stop());

const asOperator = (method: string, path: string) =>
  manage(service, method, `/admin/identities/${path}`, bearer(ADMIN_TOKEN));
const browsersOf = async (id: string): Promise<{ id: string; last_seen_day: string }[]> =>
  (await asOperator('GET', id)).body.browsers;
const idOf = async (cookie: string, more: object = {}): Promise<string> =>
  (await service.post(TOKEN, cookieBody(more), { cookie })).body.entity_id;
const browserIdOf = (response: TestResponse) => partsOf(secretOf(response)).browserId;
const today = () => new Date(service.clock.now()).toISOString().slice(0, 10);

describe('protocol §9.2: the browsers of a customer', () => {
  it('are listed with the day on which they used the customer last', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = known.body;
    const first = today();
    const pair = await rememberedPair(service, access_token);
    service.clock.advance({ seconds: 2 * 86_400 });
    await idOf(pair);
    const browsers = await browsersOf(entity_id);
    expect(browsers.map(({ last_seen_day }) => last_seen_day)).toEqual([today(), first]);
    expect(browsers[1]?.id).toBe(browserIdOf(known));
  });

  it('can be ended alone, and leads to no customer of this organization and group any more', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = known.body;
    const own = cookieHeader(known);
    const ofRival = await idOf(own, AT_RIVAL);
    const pair = await rememberedPair(service, access_token);
    const ownId = browserIdOf(known);
    const linked = (await browsersOf(entity_id)).find(({ id }) => id !== ownId)?.id as string;
    expect((await asOperator('DELETE', `${entity_id}/browsers/${linked}`)).status).toBe(200);
    expect((await browsersOf(entity_id)).map(({ id }) => id)).toEqual([ownId]);
    expect(await idOf(pair)).not.toBe(entity_id);
    expect(await idOf(own)).toBe(entity_id);
    expect((await asOperator('DELETE', `${entity_id}/browsers/${ownId}`)).status).toBe(200);
    expect(await browsersOf(entity_id)).toEqual([]);
    expect(await idOf(own)).not.toBe(entity_id);
    expect(await idOf(own, AT_RIVAL)).toBe(ofRival);
    expect(await infoStatus(service, access_token)).toBe(200);
    const details = { browser: ownId };
    const events = service.audit.filter(({ event }) => event === 'browser.ended');
    expect(events.at(-1)).toMatchObject({ actor: { kind: 'operator' }, subject: { id: entity_id }, details });
  });

  it('are unknown if they do not lead to the customer', async () => {
    const [one, other] = [await service.post(TOKEN, cookieBody()), await service.post(TOKEN, cookieBody())];
    for (const path of [`${one.body.entity_id}/browsers/${browserIdOf(other)}`, `${one.body.entity_id}/browsers/x`])
      expect((await asOperator('DELETE', path)).status).toBe(404);
    expect(await idOf(cookieHeader(other))).toBe(other.body.entity_id);
  });

  it.each<[string, (cookie: string, entityId: string, browserId: string) => Promise<unknown>]>([
    ['the operator ends it', (_, id, browserId) => asOperator('DELETE', `${id}/browsers/${browserId}`)],
    [
      'the browser is forgotten',
      (cookie) => service.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie }),
    ],
  ])('leave no ancestors of a link behind when %s', async (_, end) => {
    const ancestors = service.application.get(DataSource).getRepository(LinkAncestor);
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = known.body;
    const before = await ancestors.count();
    const pair = await rememberedPair(service, access_token);
    expect(await ancestors.count()).toBeGreaterThan(before);
    const linked = (await browsersOf(entity_id)).find(({ id }) => id !== browserIdOf(known))?.id as string;
    await end(pair, entity_id, linked);
    expect((await browsersOf(entity_id)).map(({ id }) => id)).toEqual([browserIdOf(known)]);
    expect(await ancestors.count()).toBe(before);
  });
});
