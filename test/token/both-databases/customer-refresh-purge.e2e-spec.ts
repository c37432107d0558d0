import { IsNull } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { Revocation } from '../../../src/access-token/revocation.entity.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, rowsOf, stayOf } from '../../support/customer-refresh.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { purge } from '../../support/operator-commands.js';
import { ACME } from '../../support/test-registry.js';
import { newCustomer } from '../../support/transfers.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const service = useService({ registry: refreshingRegistry() });

const familyOf = (accessToken: string) => String(claimsOf(accessToken).jti).split('.')[0] as string;

describe('the purge of customers’ refresh families', () => {
  it('deletes the families that a revocation has ended before it deletes the revocation', async () => {
    const { access_token } = await newCustomer(service);
    const moved = await stayOf(service, access_token);
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    service.passDays(20);
    await purge(service);
    expect(await service.rowsOf(Revocation).count()).toBe(0);
    expectInvalidGrant(await refreshCustomer(service, moved.refresh_token));
    expect(await rowsOf(service, familyOf(moved.access_token))).toBe(0);
  });

  it('deletes an expired family with its refresh tokens and ancestors, and no other family', async () => {
    const expired = await stayOf(service);
    service.passDays(20);
    const valid = await stayOf(service);
    service.passDays(20);
    await purge(service);
    expect(await rowsOf(service, familyOf(expired.access_token))).toBe(0);
    expect((await refreshCustomer(service, valid.refresh_token)).status).toBe(200);
  });

  it('retains a customer whose browser is idle while a refresh family leads to it', async () => {
    let { entity_id, refresh_token } = await stayOf(service);
    for (let month = 0; month < 30; month++) {
      service.passDays(28);
      refresh_token = (await refreshCustomer(service, refresh_token)).body.refresh_token;
    }
    await purge(service);
    expect((await refreshCustomer(service, refresh_token)).body.entity_id).toBe(entity_id);
    expect(await identitiesOf(service).countBy({ entityId: entity_id })).toBe(1);
  });

  it('does not retain a customer for a refresh family that has ended with all sessions', async () => {
    const registry = refreshingRegistry();
    registry.organizations = registry.organizations.map((entry) =>
      'id' in entry && entry.id === ACME ? { ...entry, idle_days: 10 } : entry,
    );
    const idle = await serviceOfTest({ registry });
    const isRetained = async ({ entity_id }: { entity_id: string }) =>
      (await identitiesOf(idle).countBy({ entityId: entity_id, erasedAt: IsNull() })) === 1;
    const [ended, live] = [await stayOf(idle), await stayOf(idle)];
    expect((await endSessions(idle, ended.access_token)).status).toBe(200);
    idle.clock.advance({ seconds: 20 * DAY_SECONDS });
    await purge(idle);
    expect([await isRetained(ended), await isRetained(live)]).toEqual([false, true]);
  });
});
