import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { Browser } from '../../../src/session/browser.entity.js';
import { Session } from '../../../src/session/session.entity.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { browserIdOf, secretOf } from '../../support/identities.js';
import { rememberedPair, rememberingRegistry, transferredSessionsOf } from '../../support/remember.js';
import { ACME, ACME_SITE, AT_RIVAL } from '../../support/test-registry.js';
import { type TestResponse } from '../../support/test-service.js';
import { infoStatus, newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const service = useService({ registry: rememberingRegistry() });

const asOperator = (method: string, path: string) => service.admin(method, `/admin/customers/${path}`);
const browsersOf = async (id: string): Promise<{ id: string; last_seen_day: string }[]> =>
  (await asOperator('GET', id)).body.browsers;
const browserOf = (response: TestResponse) => browserIdOf(secretOf(response));
const today = () => new Date(service.clock.now()).toISOString().slice(0, 10);

describe('protocol §9.2: the browsers of a customer', () => {
  it('can be ended alone, with its access tokens and what was made with them, and leads to the customer no more', async () => {
    const known = await service.visit();
    const { entity_id, access_token } = known.body;
    const [own, ownId, first] = [cookieHeader(known), browserOf(known), today()];
    const ofRival = (await service.visit(own, AT_RIVAL)).body;
    const [pair, later] = [await rememberedPair(service, access_token), await rememberedPair(service, access_token)];
    service.passDays(2);
    const onDevice = (await service.visit(pair)).body;
    const [moved, ...others] = await browsersOf(entity_id);
    expect(moved?.last_seen_day).toBe(today());
    expect(others).toHaveLength(2);
    expect(others).toContainEqual({ id: ownId, last_seen_day: first });
    const fromDevice = await rememberedPair(service, onDevice.access_token);
    expect((await asOperator('DELETE', `${entity_id}/browsers/${moved?.id}`)).status).toBe(200);
    const left = (await browsersOf(entity_id)).map(({ id }) => id);
    expect(left.sort()).toEqual(others.map(({ id }) => id).sort());
    for (const ended of [pair, fromDevice]) expect(await service.idOf(ended)).not.toBe(entity_id);
    expect(await infoStatus(service, onDevice.access_token)).toBe(401);
    for (const cookie of [own, later]) expect(await service.idOf(cookie)).toBe(entity_id);
    service.clock.reset();
    expect(await infoStatus(service, access_token)).toBe(200);

    expect((await asOperator('DELETE', `${entity_id}/browsers/${ownId}`)).status).toBe(200);
    expect(await browsersOf(entity_id)).toEqual([]);
    for (const cookie of [own, later]) expect(await service.idOf(cookie)).not.toBe(entity_id);
    expect(await infoStatus(service, access_token)).toBe(401);
    expect(await service.idOf(own, AT_RIVAL)).toBe(ofRival.entity_id);
    expect(await infoStatus(service, ofRival.access_token)).toBe(200);
    const details = { browser: ownId };
    const events = service.audit.filter(({ event }) => event === 'browser.ended');
    expect(events.at(-1)).toMatchObject({ actor: { kind: 'operator' }, subject: { id: entity_id }, details });
  });

  it('are all in the data of the customer, the one that was seen last first', async () => {
    const known = await service.visit();
    const { entity_id, access_token } = known.body;
    await rememberedPair(service, access_token);
    const { manager } = service.application.get(DataSource);
    const [session] = (await transferredSessionsOf(service, entity_id)) as [Session];
    const ids = Array.from({ length: 138 }, () => randomUUID());
    for (const id of ids) await manager.insert(Browser, { browserId: id, secretHash: id, version: 0 });
    const today = session.seenDay ?? 0;
    const sessions = ids.map((browserId, index) => {
      return { ...session, id: `session-of-${browserId}`, codeHash: null, browserId, seenDay: today - (index % 2) };
    });
    for (let first = 0; first < sessions.length; first += 50)
      await manager.insert(Session, sessions.slice(first, first + 50));

    const days = (await browsersOf(entity_id)).map(({ last_seen_day }) => last_seen_day);
    expect(days).toHaveLength(140);
    expect(days).toEqual([...days].sort().reverse());
    expect(new Set(days).size).toBe(2);

    const all = [...ids, browserOf(known), String(session.browserId)].sort();
    expect((await browsersOf(entity_id)).map(({ id }) => id).sort()).toEqual(all);
    const last = all.at(-1) as string;
    expect((await asOperator('DELETE', `${entity_id}/browsers/${last}`)).status).toBe(200);
    expect((await asOperator('DELETE', `${entity_id}/browsers/${last}`)).status).toBe(404);
  });

  it('of another customer, or unknown ones, cannot be ended', async () => {
    const [one, other] = [await newCustomer(service), await newCustomer(service)];
    for (const { access_token } of [one, other]) await rememberedPair(service, access_token);
    const ofOther = (await browsersOf(other.entity_id))[0]?.id;
    for (const path of [`${one.entity_id}/browsers/${ofOther}`, `${one.entity_id}/browsers/x`])
      expect((await asOperator('DELETE', path)).status).toBe(404);
    expect(await browsersOf(other.entity_id)).toHaveLength(2);
  });

  const forgotten = { client_id: ACME_SITE, organization_id: ACME };
  it.each<[string, (browser: { cookie: string; token: string; path: string }) => Promise<unknown>]>([
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
  ])('lead to the customer no more when %s', async (_, end) => {
    const known = await service.visit();
    const { entity_id, access_token: token } = known.body;
    const cookie = await rememberedPair(service, token);
    const moved = (await browsersOf(entity_id)).find(({ id }) => id !== browserOf(known))?.id;
    await end({ cookie, token, path: `${entity_id}/browsers/${moved}` });
    expect((await browsersOf(entity_id)).map(({ id }) => id)).toEqual([browserOf(known)]);
    expect(await transferredSessionsOf(service, entity_id)).toEqual([]);
    expect(await service.idOf(cookie)).not.toBe(entity_id);
  });
});
