import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { BrowserLink, KnownBrowser, LinkAncestor } from '../../../src/identity/browser-link.entity.js';
import { partsOf } from '../../../src/identity/identity-cookies.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { expectInvalidRequest } from '../../support/expect-error.js';
import { secretOf } from '../../support/identities.js';
import { linksOf, rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { ACME, ACME_SITE, AT_RIVAL } from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import { infoStatus, newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const service = useService({ registry: rememberingRegistry() });

const asOperator = (method: string, path: string) => service.admin(method, `/admin/identities/${path}`);
const browsersOf = async (id: string): Promise<{ id: string; last_seen_day: string }[]> =>
  (await asOperator('GET', id)).body.browsers;
const browserIdOf = (response: TestResponse) => partsOf(secretOf(response)).browserId;
const today = () => new Date(service.clock.now()).toISOString().slice(0, 10);

describe('protocol §9.2: the browsers of a customer', () => {
  it('can be ended alone, and leads to no customer of this organization and group any more', async () => {
    const known = await service.visit();
    const { entity_id, access_token } = known.body;
    const [own, ownId, first] = [cookieHeader(known), browserIdOf(known), today()];
    const ofRival = await service.idOf(own, AT_RIVAL);
    const pair = await rememberedPair(service, access_token);
    service.passDays(2);
    await service.idOf(pair);
    const [linked, ...others] = await browsersOf(entity_id);
    expect([linked?.last_seen_day, ...others]).toEqual([today(), { id: ownId, last_seen_day: first }]);
    service.clock.reset();
    expect((await asOperator('DELETE', `${entity_id}/browsers/${linked?.id}`)).status).toBe(200);
    expect((await browsersOf(entity_id)).map(({ id }) => id)).toEqual([ownId]);
    expect(await service.idOf(pair)).not.toBe(entity_id);
    expect(await service.idOf(own)).toBe(entity_id);
    expect((await asOperator('DELETE', `${entity_id}/browsers/${ownId}`)).status).toBe(200);
    expect(await browsersOf(entity_id)).toEqual([]);
    expect(await service.idOf(own)).not.toBe(entity_id);
    expect(await service.idOf(own, AT_RIVAL)).toBe(ofRival);
    expect(await infoStatus(service, access_token)).toBe(200);
    const details = { browser: ownId };
    const events = service.audit.filter(({ event }) => event === 'browser.ended');
    expect(events.at(-1)).toMatchObject({ actor: { kind: 'operator' }, subject: { id: entity_id }, details });
  });

  it('are listed in pages of at most 200, and the data of the customer has the 200 that were seen last', async () => {
    const known = await service.visit();
    const { entity_id, access_token } = known.body;
    await rememberedPair(service, access_token);
    const { manager } = service.application.get(DataSource);
    const [link] = await linksOf(service, entity_id);
    const ids = Array.from({ length: 450 }, () => randomUUID());
    for (const id of ids) await manager.insert(KnownBrowser, { browserId: id, secretHash: id, version: 0 });
    const today = link?.seenDay ?? 0;
    const links = ids.map((browserId, index) => ({ ...link, browserId, seenDay: today - (index % 2) }));
    for (let first = 0; first < links.length; first += 50)
      await manager.insert(BrowserLink, links.slice(first, first + 50));

    const listed = await browsersOf(entity_id);
    expect(listed).toHaveLength(200);
    expect(new Set(listed.map(({ last_seen_day }) => last_seen_day)).size).toBe(1);

    const all = [...ids, browserIdOf(known), String(link?.browserId)].sort();
    for (const [limit, lengths] of [
      ['', [200, 200, 52]],
      ['limit=113&', [113, 113, 113, 113]],
    ] as const) {
      const pages: string[][] = [];
      for (let cursor: string | undefined = ''; cursor !== undefined; ) {
        const page: TestResponse = await asOperator('GET', `${entity_id}/browsers?${limit}cursor=${cursor}`);
        pages.push(page.body.browsers.map(({ id }: { id: string }) => id));
        cursor = page.body.next_cursor;
      }
      expect(pages.map(({ length }) => length)).toEqual(lengths);
      expect(pages.flat()).toEqual(all);
    }
    const last = all.at(-1) as string;
    expect((await asOperator('DELETE', `${entity_id}/browsers/${last}`)).status).toBe(200);
    expect((await asOperator('DELETE', `${entity_id}/browsers/${last}`)).status).toBe(404);
  });

  it('have pages with errors for another limit, cursor or parameter, and for an unknown customer or browser', async () => {
    const [one, other] = [await newCustomer(service), await newCustomer(service)];
    for (const { access_token } of [one, other]) await rememberedPair(service, access_token);
    const { next_cursor } = (await asOperator('GET', `${one.entity_id}/browsers?limit=1`)).body;
    const listOf = (id: string, query: string) => asOperator('GET', `${id}/browsers?${query}`);
    for (const limit of ['0', '201', '1.5', 'x'])
      expectInvalidRequest(await listOf(one.entity_id, `limit=${limit}`), 'limit: must be 1 to 200');
    const hint = 'cursor: not a next_cursor of this list';
    for (const cursor of ['x', `${next_cursor}A`, Buffer.from('1 clients acme').toString('base64url')])
      expectInvalidRequest(await listOf(one.entity_id, `cursor=${cursor}`), hint);
    expectInvalidRequest(await listOf(other.entity_id, `cursor=${next_cursor}`), hint);
    expectInvalidRequest(await listOf(one.entity_id, 'after=x'), 'after: unknown parameter');
    for (const id of [randomUUID(), 'x']) expect((await listOf(id, '')).status).toBe(404);
    const ofOther = (await browsersOf(other.entity_id))[0]?.id;
    for (const path of [`${one.entity_id}/browsers/${ofOther}`, `${one.entity_id}/browsers/x`])
      expect((await asOperator('DELETE', path)).status).toBe(404);
    expect(await browsersOf(other.entity_id)).toHaveLength(2);
  });

  const forgotten = { client_id: ACME_SITE, organization_id: ACME };
  it.each<[string, (link: { cookie: string; token: string; path: string }) => Promise<unknown>]>([
    ['the operator ends it', ({ path }) => asOperator('DELETE', path)],
    ['the browser is forgotten', ({ cookie }) => service.post('/v2/customer/forget', forgotten, { cookie })],
    [
      'a new customer replaces it',
      async ({ cookie, token }) => {
        await service.send('DELETE', TOKEN, bearer(token));
        const next = await service.idOf(cookie);
        expect(await service.idOf(cookie), 'the new customer stays').toBe(next);
      },
    ],
  ])('leave no ancestors of a link behind when %s', async (_, end) => {
    const ancestors = service.rowsOf(LinkAncestor);
    const known = await service.visit();
    const { entity_id, access_token: token } = known.body;
    const before = await ancestors.count();
    const cookie = await rememberedPair(service, token);
    expect(await ancestors.count()).toBeGreaterThan(before);
    const linked = (await browsersOf(entity_id)).find(({ id }) => id !== browserIdOf(known))?.id;
    await end({ cookie, token, path: `${entity_id}/browsers/${linked}` });
    expect((await browsersOf(entity_id)).map(({ id }) => id)).toEqual([browserIdOf(known)]);
    expect(await ancestors.count()).toBe(before);
    expect(await service.idOf(cookie)).not.toBe(entity_id);
  });
});
