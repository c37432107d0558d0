import { describe, expect, it } from 'vitest';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { endSessions } from '../../support/end-sessions.js';
import { identitiesOf } from '../../support/identities.js';
import { purge } from '../../support/operator-commands.js';
import { rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { ACME } from '../../support/test-registry.js';
import { infoStatus } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const GROUP = `/v2/customer/${ACME}/sales/token`;

const service = useService({ registry: rememberingRegistry() });

/** A customer whose first browser is idle, and the token that another browser got for it today. */
async function customerOfOtherBrowser(path: string) {
  const phone = new TestBrowser(service);
  await phone.visit();
  if (path === GROUP) await phone.visit({}, GROUP);
  const body = path === GROUP ? cookieBody({ organization_id: undefined }) : cookieBody();
  const { entity_id, access_token } = (await phone.visit({}, path)).body;
  let cookie = await rememberedPair(service, access_token);
  let token = '';
  for (let month = 0; month < 28; month++) {
    service.passDays(28);
    const response = await service.post(path, body, { cookie });
    expect(response.body.entity_id).toBe(entity_id);
    cookie = cookieHeader(response);
    token = response.body.access_token;
  }
  return { entityId: entity_id as string, token, phone };
}

describe.each([
  ['the first customer of its browser', TOKEN],
  ['a customer in a group', GROUP],
])('protocol §3.12: the generation of %s', (_, path) => {
  it('outlives the purge of the idle browser after the erasure, so that the tokens of the last day stay ended', async () => {
    const { entityId, token, phone } = await customerOfOtherBrowser(path);
    expect(await infoStatus(service, token)).toBe(200);
    expect((await service.erase(entityId)).status).toBe(200);
    for (let round = 0; round < 3; round++) await purge(service);
    expect(await infoStatus(service, token)).toBe(401);
    const row = await identitiesOf(service).findOneByOrFail({ entityId });
    expect(row).toMatchObject({ groupId: null, creator: null, lastTokenDay: null, createdAt: null });
    expect(row.erasedAt).not.toBeNull();
    expect(row.generation).toBeGreaterThan(0);
    expect((await phone.visit()).body.entity_id).not.toBe(entityId);
  });

  it('outlives the purge of the idle browser after the end of all sessions', async () => {
    const { entityId, token } = await customerOfOtherBrowser(path);
    expect((await endSessions(service, token)).status).toBe(200);
    for (let round = 0; round < 3; round++) await purge(service);
    expect(await infoStatus(service, token)).toBe(401);
    expect(await identitiesOf(service).countBy({ entityId })).toBe(1);
  });
});
