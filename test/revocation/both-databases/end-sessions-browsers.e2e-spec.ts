import { randomUUID } from 'node:crypto';
import { ServiceUnavailableException } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { BrowserLink, KnownBrowser, LinkAncestor } from '../../../src/identity/browser-link.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { endSessions, endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectInvalidRequest } from '../../support/expect-error.js';
import { secretOf } from '../../support/identities.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { linksOf, moveOf, remember, rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { ACME, ACME_ORIGIN, ACME_SITE, PUBLIC_SITE, RIVAL } from '../../support/test-registry.js';
import { infoStatus, newCustomer } from '../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const AT_RIVAL = { client_id: PUBLIC_SITE, organization_id: RIVAL };
const HINT = 'browsers: needs the identity cookies of a browser that got the customer without a transfer';
const BROWSERS = { browsers: true };

const service = useService({ registry: rememberingRegistry() });

/** The token of another customer, which does not conflict with customers outside of the group. */
const tokenOfGroup = async (): Promise<string> =>
  (await service.post(`/v2/customer/${ACME}/sales/token`, cookieBody())).body.access_token;
const endAsOperator = (entityId: string) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId, BROWSERS);

describe('protocol §4.14: end_sessions with browsers: true', () => {
  it('does not erase the customer, to which an agent or a new link leads afterwards', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    await endAsOperator(entity_id);
    expect(await infoStatus(service, access_token)).toBe(401);
    const agent = await issueAgentToken(service);
    const granted = await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agent));
    expect(granted.body.entity_id).toBe(entity_id);
    const pair = await rememberedPair(service, granted.body.access_token);
    expect(await service.idOf(pair)).toBe(entity_id);
  });

  it('ends the secret of a browser without other customers, so a copy of its cookies leads to no customer', async () => {
    const victim = await service.post(TOKEN, cookieBody());
    const copy = cookieHeader(victim);
    await endSessions(service, victim.body.access_token, BROWSERS, { cookie: copy });
    const next = await service.visit(copy);
    expect(secretOf(next)).not.toBe(secretOf(victim));
    expect(await service.idOf(copy)).not.toBe(next.body.entity_id);
  });

  it('accepts a request with several valid pairs if one of them leads to the customer', async () => {
    const [one, other] = [await service.post(TOKEN, cookieBody()), await service.post(TOKEN, cookieBody())];
    for (const [known, cookies] of [
      [one, [one, other]],
      [other, [one, other]],
    ] as const) {
      const cookie = cookies.map(cookieHeader).join('; ');
      const { status } = await endSessions(service, known.body.access_token, BROWSERS, { cookie });
      expect(status).toBe(200);
    }
  });

  it.each<[string, (own: string, other: string) => string | undefined]>([
    ['no cookies', () => undefined],
    ['the cookies of another browser', (_, other) => other],
    ['half a pair', (own) => own.split('; ')[0]],
    ['an id with the secret of another browser', (own, other) => `${own.split('; ')[0]}; ${other.split('; ')[1]}`],
  ])('is refused with %s for a customer token, and ends nothing', async (_, cookieOf) => {
    const known = await service.post(TOKEN, cookieBody());
    const cookie = cookieOf(cookieHeader(known), cookieHeader(await service.post(TOKEN, cookieBody())));
    const { access_token, entity_id } = known.body;
    expectInvalidRequest(await endSessions(service, access_token, BROWSERS, cookie ? { cookie } : {}), HINT);
    expect(await infoStatus(service, access_token)).toBe(200);
    expect(await service.idOf(cookieHeader(known))).toBe(entity_id);
  });

  it('needs no cookies after the browser of the customer was forgotten', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const cookie = cookieHeader(known);
    await service.idOf(cookie, AT_RIVAL);
    const body = { client_id: ACME_SITE, organization_id: ACME };
    await service.post('/v2/customer/forget', body, { cookie, origin: ACME_ORIGIN });
    expect((await endSessions(service, known.body.access_token, BROWSERS)).status).toBe(200);
    expect(await infoStatus(service, known.body.access_token)).toBe(401);
  });

  it('needs no cookies of an agent or the operator', async () => {
    const agent = await issueAgentToken(service);
    for (const end of [
      (customer_id: string) => endSessions(service, agent, { customer_id, ...BROWSERS }),
      (id: string) => endAsOperator(id),
    ]) {
      const known = await service.post(TOKEN, cookieBody());
      expect((await end(known.body.entity_id)).status).toBe(200);
      expect(await service.idOf(cookieHeader(known))).not.toBe(known.body.entity_id);
      const { body } = await service.admin('GET', `/admin/identities/${known.body.entity_id}`);
      expect(body.browsers).toEqual([]);
    }
  });

  it('ends a link that a thief made with a stolen token, at any depth, and what the thief made with the link', async () => {
    const victim = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = victim.body;
    const first = await rememberedPair(service, access_token);
    const second = await rememberedPair(service, (await service.visit(first)).body.access_token);
    const copied = await rememberedPair(service, await tokenOfGroup(), second);
    const ofThief = (await service.visit(copied)).body;
    expect(ofThief.entity_id).toBe(entity_id);
    const code = await moveOf(service, ofThief.access_token);
    expect((await endSessions(service, access_token)).status).toBe(200);
    expect(await infoStatus(service, ofThief.access_token)).toBe(401);
    expect((await remember(service, code)).status).toBe(400);
    for (const cookie of [first, second, copied]) expect(await service.idOf(cookie)).not.toBe(entity_id);
    expect(await service.idOf(cookieHeader(victim))).toBe(entity_id);
  });

  it('is refused with a pair that came from a transfer, so that a thief cannot end the browsers of the victim', async () => {
    const victim = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = victim.body;
    const cookie = await rememberedPair(service, access_token);
    expectInvalidRequest(await endSessions(service, access_token, BROWSERS, { cookie }), HINT);
    const copy = await rememberedPair(service, await tokenOfGroup(), cookie);
    expectInvalidRequest(await endSessions(service, access_token, BROWSERS, { cookie: copy }), HINT);
    expect(await infoStatus(service, access_token)).toBe(200);
    expect(await service.idOf(cookieHeader(victim))).toBe(entity_id);
  });

  it('needs no cookies if no browser leads to the customer in another way than by a transfer', async () => {
    const agent = await issueAgentToken(service);
    const { entity_id, access_token } = (await service.post(TOKEN, agentTokenBody(), bearer(agent))).body;
    const pair = await rememberedPair(service, access_token);
    expect((await endSessions(service, access_token, BROWSERS)).status).toBe(200);
    expect(await service.idOf(pair)).not.toBe(entity_id);
  });

  it('has ended everything when its first transaction commits, also if the removal of the links fails, and can be repeated', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id, access_token } = known.body;
    const own = cookieHeader(known);
    const pair = await rememberedPair(service, access_token);
    const database = service.application.get(Database);
    const transaction = database.transaction.bind(database);
    vi.spyOn(database, 'transaction')
      .mockImplementationOnce((work) => transaction(work) as never)
      .mockRejectedValueOnce(new ServiceUnavailableException());
    expect((await endAsOperator(entity_id)).status).toBe(503);
    vi.restoreAllMocks();
    expect(await infoStatus(service, access_token)).toBe(401);
    for (const cookie of [own, pair]) {
      const next = await service.visit(cookie);
      expect(next.body.entity_id).not.toBe(entity_id);
      expect(secretOf(next), 'a copy of the cookies does not lead to the next customer').not.toBe(cookie.slice(-96));
      expect(await service.idOf(cookie)).not.toBe(next.body.entity_id);
    }
    expect((await endAsOperator(entity_id)).status).toBe(200);
    expect(await linksOf(service, entity_id)).toEqual([]);
  });

  it('leaves a browser its secret and its customer of another organization, if the removal of the links fails', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const cookie = cookieHeader(known);
    const ofRival = await service.idOf(cookie, AT_RIVAL);
    const database = service.application.get(Database);
    const transaction = database.transaction.bind(database);
    vi.spyOn(database, 'transaction')
      .mockImplementationOnce((work) => transaction(work) as never)
      .mockRejectedValueOnce(new ServiceUnavailableException());
    await endAsOperator(known.body.entity_id);
    vi.restoreAllMocks();
    const next = await service.visit(cookie);
    expect(next.body.entity_id).not.toBe(known.body.entity_id);
    expect([secretOf(next), await service.idOf(cookie, AT_RIVAL)]).toEqual([secretOf(known), ofRival]);
  });

  it('costs a few statements, although a thief has made many browsers with links that have ended', async () => {
    const known = await service.post(TOKEN, cookieBody());
    const { entity_id } = known.body;
    const ofThief = (await service.post(`/v2/customer/${ACME}/sales/token`, cookieBody())).body;
    const pair = await rememberedPair(
      service,
      known.body.access_token,
      await rememberedPair(service, ofThief.access_token),
    );
    expect(await service.idOf(pair)).toBe(entity_id);
    expect(await linksOf(service, ofThief.entity_id)).toHaveLength(2);
    const { manager } = service.application.get(DataSource);
    const ids: string[] = Array.from({ length: 60 }, () => randomUUID());
    await manager.insert(
      KnownBrowser,
      ids.map((browserId) => ({ browserId, secretHash: browserId, version: 0 })),
    );
    for (const entityId of [entity_id, ofThief.entity_id]) {
      const [link] = (await linksOf(service, entityId)) as [BrowserLink];
      await manager.insert(
        BrowserLink,
        ids.map((browserId) => ({ ...link, browserId })),
      );
      const [ancestorId] = JSON.parse(link.lineage as string).ancestors;
      await manager.insert(
        LinkAncestor,
        ids.map((browserId) => ({ entityId, browserId, ancestorId })),
      );
    }
    expect((await service.send('DELETE', TOKEN, bearer(ofThief.access_token))).status).toBe(200);
    const logged = vi.spyOn(service.application.get(DataSource).logger, 'logQuery');
    expect((await endAsOperator(entity_id)).status).toBe(200);
    const selects = logged.mock.calls.filter(([sql]) => /^\s*SELECT/.test(sql) && !/recorded_value/.test(sql));
    logged.mockRestore();
    expect(selects.length).toBeLessThan(5);
    expect(await linksOf(service, entity_id)).toEqual([]);
    const secrets = (await manager.find(KnownBrowser)).filter(({ browserId }) => ids.includes(browserId));
    expect(new Set(secrets.map(({ secretHash }) => secretHash))).toEqual(new Set(['']));
  });
});
