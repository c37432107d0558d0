import { describe, expect, it } from 'vitest';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, type Stay, stayOf } from '../../support/customer-refresh.js';
import { expectInvalidGrant, expectInvalidToken } from '../../support/expect-error.js';
import { browserIdOf, secretOf } from '../../support/identities.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { rememberedPair } from '../../support/remember.js';
import { infoStatus, redeem, sessionsIn, TRANSFER, transferBody, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const REFRESH_TOKEN_DAYS = 30;

const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
const service = useService({ registry });

const sidOf = (token: string) => claimsOf(token).sid as string;
/** The operator ends the browser with which a customer came. */
async function endBrowser(entityId: string, secret: string): Promise<void> {
  const path = `/admin/customers/${entityId}/browsers/${browserIdOf(secret)}`;
  expect((await service.admin('DELETE', path)).status).toBe(200);
}
const isUsable = async ({ refresh_token }: Stay) => (await refreshCustomer(service, refresh_token)).status === 200;

describe('a session whose parent was deleted', () => {
  it('ends with it at any depth: a device, a browser, a transferred token and a transfer token', async () => {
    const first = await service.visit();
    const { entity_id, access_token } = first.body;
    const device = await stayOf(service, access_token);
    const cookie = await rememberedPair(service, device.access_token);
    const moved = (await redeem(service, await transferToken(service, device.access_token))).body;
    const last = await stayOf(service, moved.access_token);
    const code = await transferToken(service, last.access_token);
    await endBrowser(entity_id, secretOf(first));
    for (const token of [access_token, device.access_token, moved.access_token, last.access_token])
      expect(await infoStatus(service, token)).toBe(401);
    expect([await isUsable(device), await isUsable(last)]).toEqual([false, false]);
    expectInvalidGrant(await redeem(service, code));
    expect(await service.idOf(cookie)).not.toBe(entity_id);
    expect(await sessionsIn(service).countBy({ customerId: entity_id })).toBe(0);
  });

  it('cannot be made with a token of the deleted session', async () => {
    const first = await service.visit();
    await endBrowser(first.body.entity_id, secretOf(first));
    expectInvalidToken(await service.post(TRANSFER, transferBody(), bearer(first.body.access_token)));
    expect(await sessionsIn(service).countBy({ customerId: first.body.entity_id })).toBe(0);
  });
});

describe('a session whose parent has expired and was purged', () => {
  it('stays, and ends with the parent of its parent', async () => {
    const first = await service.visit();
    const { entity_id, access_token } = first.body;
    const expiring = await stayOf(service, access_token);
    let device = await stayOf(service, expiring.access_token);
    for (let day = 0; day <= REFRESH_TOKEN_DAYS + 1; day += 16) {
      service.passDays(16);
      device = (await refreshCustomer(service, device.refresh_token)).body;
    }
    await purge(service);
    const sessions = await sessionsIn(service).findBy({ customerId: entity_id });
    expect(sessions.map(({ id }) => id)).not.toContain(sidOf(expiring.access_token));
    expect(await isUsable(expiring)).toBe(false);
    device = (await refreshCustomer(service, device.refresh_token)).body;
    expect(await infoStatus(service, device.access_token)).toBe(200);
    await endBrowser(entity_id, secretOf(first));
    expect(await infoStatus(service, device.access_token)).toBe(401);
    expect(await isUsable(device)).toBe(false);
  });
});

describe('the end of an access token', () => {
  it('ends what was made in its session since 60 s before its iat, and leaves older devices and other ones', async () => {
    const first = await service.visit();
    const cookie = cookieHeader(first);
    const { entity_id, access_token } = first.body;
    const older = await stayOf(service, access_token);
    service.clock.advance({ seconds: 5 });
    const recent = await stayOf(service, access_token);
    service.clock.advance({ seconds: 58 });
    const next = (await service.visit(cookie)).body.access_token;
    const latest = await stayOf(service, access_token);
    expect((await service.send('DELETE', TOKEN, bearer(next))).status).toBe(200);
    for (const token of [access_token, next, recent.access_token, latest.access_token])
      expect(await infoStatus(service, token)).toBe(401);
    expect(await infoStatus(service, older.access_token)).toBe(200);
    expect([await isUsable(older), await isUsable(recent), await isUsable(latest)]).toEqual([true, false, false]);
    expect(await service.idOf(cookie)).toBe(entity_id);
  });

  it('that has ended already ends only what was made while its epoch was that of the session', async () => {
    const first = await service.visit();
    const ended = first.body.access_token;
    expect((await service.send('DELETE', TOKEN, bearer(ended))).status).toBe(200);
    const next = (await service.visit(cookieHeader(first))).body.access_token;
    const device = await stayOf(service, next);
    expect((await service.send('DELETE', TOKEN, bearer(ended))).status).toBe(200);
    expect(await infoStatus(service, next)).toBe(200);
    expect(await isUsable(device)).toBe(true);
  });

  it('that an agent obtained, without a session, ends what was made with it', async () => {
    const agent = bearer(await issueAgentToken(service));
    const { access_token } = (await service.post(TOKEN, agentTokenBody(), agent)).body;
    expect(claimsOf(access_token).sid).toBeUndefined();
    const device = await stayOf(service, access_token);
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    expect(await infoStatus(service, device.access_token)).toBe(401);
    expect(await isUsable(device)).toBe(false);
  });
});
