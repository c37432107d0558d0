import { IsNull } from 'typeorm';
import { describe, expect, it } from 'vitest';
import { Ended } from '../../../src/feed/ended.entity.js';
import type { Session } from '../../../src/session/session.entity.js';
import { claimsOf, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import {
  currentOf,
  refreshCustomer,
  refreshingRegistry,
  refreshSessionsOf,
  type Stay,
  stay,
  stayOf,
} from '../../support/customer-refresh.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectLimited } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { purge } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import { moveOf } from '../../support/remember.js';
import { delaySelects, statementsOf } from '../../support/statements.js';
import { ACME, ACME_NATIVE, PUBLIC_SITE } from '../../support/test-registry.js';
import type { TestResponse, TestService } from '../../support/test-service.js';
import { agentTokenPair, infoStatus, newCustomer, sessionsIn } from '../../support/transfers.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const REFRESH_TOKEN_TTL_SECONDS = 30 * DAY_SECONDS;
const NETWORK = { 'x-forwarded-for': '203.0.113.7' };
const OTHER_NETWORK = { 'x-forwarded-for': '203.0.113.8' };

const environment = { TRUST_PROXY: '1' };
const service = useService({ registry: refreshingRegistry(), environment });
/** Another process on the same database. */
const other = useService(() => ({ registry: refreshingRegistry(), environment, database: service.database }));

const asOperator = (method: string, path: string) => service.admin(method, `/admin/customers/${path}`);
const use = (token: string, more: object = {}, headers: object = NETWORK) =>
  refreshCustomer(service, token, more, headers);
async function rotate(token: string, times: number): Promise<string> {
  let current = token;
  for (let rotation = 0; rotation < times; rotation++) current = (await use(current)).body.refresh_token;
  return current;
}
const sidOf = (accessToken: string) => claimsOf(accessToken).sid as string;

describe('protocol §4.8: a refresh token of a customer', () => {
  it('gives the fields of the identity token grant and a new refresh token', async () => {
    const { entity_id, access_token, refresh_token } = await stayOf(service);
    const response = await use(refresh_token);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      access_token: expect.any(String),
      client_id: 'acme-site',
      entity_id,
      expires_in: 28_800,
      refresh_token: expect.stringMatching(/^dev:[\w-]{22}\.[\w-]{43}$/),
      token_type: 'Bearer',
    });
    expect(response.body.refresh_token).not.toBe(refresh_token);
    expect(response.cookies).toEqual([]);
    expect(claimsOf(response.body.access_token)).toMatchObject({ sub: entity_id, gty: 'refresh_token' });
    expect(sidOf(response.body.access_token)).toBe(sidOf(access_token));
    expect(await infoStatus(service, response.body.access_token)).toBe(200);
    expect((await use(response.body.refresh_token)).status).toBe(200);
  });

  it('costs one SELECT and one UPDATE', async () => {
    const { refresh_token } = await stayOf(service);
    const sent = await statementsOf(service, () => use(refresh_token));
    expect(sent).toEqual(['SELECT', 'UPDATE']);
  });

  it('is for clients that list the grant, and an attempt of another client ends nothing', async () => {
    const { refresh_token } = await stayOf(service);
    const unauthorized = { status: 400, error: 'unauthorized_client', hint: /^grant_type: / };
    expectError(await use(refresh_token, { client_id: PUBLIC_SITE }), unauthorized);
    expectInvalidGrant(await use(refresh_token, { client_id: ACME_NATIVE }));
    const next = await use(refresh_token);
    expect(next.status).toBe(200);
    expectInvalidGrant(await use(refresh_token, { client_id: ACME_NATIVE }));
    expect((await use(next.body.refresh_token)).status).toBe(200);
  });

  it('is rejected at /v2/token, as is an agent’s at the customers’ endpoint, and nothing ends', async () => {
    const customer = await stayOf(service);
    const agent = await agentTokenPair(service);
    for (let attempt = 0; attempt < 2; attempt++) {
      expectInvalidGrant(await refresh(service, customer.refresh_token));
      expectInvalidGrant(await use(agent.refresh_token));
    }
    expect((await use(customer.refresh_token)).status).toBe(200);
    expect((await refresh(service, agent.refresh_token)).status).toBe(200);
    expect(await infoStatus(service, customer.access_token), 'nothing is revoked').toBe(200);
  });

  it('expires after its lifetime since the last use', async () => {
    const { refresh_token } = await stayOf(service);
    service.clock.advance({ seconds: REFRESH_TOKEN_TTL_SECONDS - 60 });
    const next = (await use(refresh_token)).body.refresh_token;
    service.clock.advance({ seconds: REFRESH_TOKEN_TTL_SECONDS - 60 });
    const last = (await use(next)).body.refresh_token;
    service.clock.advance({ seconds: REFRESH_TOKEN_TTL_SECONDS });
    expectInvalidGrant(await use(last));
  });
});

describe('protocol §3.9: a repeated use of a customer’s refresh token', () => {
  it.each([
    ['two minutes from the same network', 120, NETWORK],
    ['29 days from the same network', 29 * DAY_SECONDS, NETWORK],
    ['29 days from another network', 29 * DAY_SECONDS, OTHER_NETWORK],
  ])('that its successor has not followed gets the same successor after %s', async (_, seconds, headers) => {
    const { refresh_token } = await stayOf(service, undefined, {}, NETWORK);
    const lost = (await use(refresh_token)).body;
    service.clock.advance({ seconds });
    const again = (await use(refresh_token, {}, headers)).body;
    expect(again.refresh_token).toBe(lost.refresh_token);
    expect(await infoStatus(service, again.access_token)).toBe(200);
    expect((await use(again.refresh_token)).status).toBe(200);
  });

  it('gives another access token each time, up to the limit of token requests, and all of them end with the session', async () => {
    const environment = { RATE_LIMIT: 'tokens=10/3600' };
    const limited = await serviceOfTest({ registry: refreshingRegistry(), environment });
    beginWindow(limited);
    const { refresh_token } = await stayOf(limited); // 3 requests: a customer, a transfer, a redemption
    const uses = [];
    for (let n = 0; n < 7; n++) uses.push((await refreshCustomer(limited, refresh_token)).body);
    expectLimited(await refreshCustomer(limited, refresh_token), 3_600);
    const [successor] = new Set(uses.map((body) => body.refresh_token as string));
    const accessTokens = new Set(uses.map((body) => body.access_token as string));
    expect(uses.map((body) => body.refresh_token)).toEqual(uses.map(() => successor));
    expect(accessTokens.size).toBe(7);
    for (const token of accessTokens) expect(await infoStatus(limited, token)).toBe(200);

    limited.clock.advance({ seconds: 3_600 });
    expect((await refreshCustomer(limited, `${successor}`)).status).toBe(200);
    expectInvalidGrant(await refreshCustomer(limited, refresh_token));
    for (const token of accessTokens) expect(await infoStatus(limited, token)).toBe(401);
    expectInvalidGrant(await refreshCustomer(limited, `${successor}`));
  });

  it('ends the session with what was made in it, also after the session has expired', async () => {
    const first = await stayOf(service);
    const [, last] = [await use(first.refresh_token), await use(await rotate(first.refresh_token, 1))];
    let made = await stayOf(service, last.body.access_token);
    service.passDays(20);
    made = (await use(made.refresh_token)).body;
    service.passDays(11);
    expectInvalidGrant(await use(last.body.refresh_token));
    made = (await use(made.refresh_token)).body;
    expectInvalidGrant(await use(first.refresh_token));
    expect(await infoStatus(service, made.access_token)).toBe(401);
    expectInvalidGrant(await use(made.refresh_token));
  });

  it('cannot be computed from the row of the session, even with the constant part', async () => {
    for (const column of ['refreshIdHash', 'currentHash', 'previousHash', 'successorNonce'] as const) {
      const { entity_id, refresh_token } = await stayOf(service);
      const current = (await use(refresh_token)).body.refresh_token;
      const [row] = (await refreshSessionsOf(service, entity_id)) as [Session];
      const stored = row[column] as string;
      const secret = Buffer.from(stored, stored.length === 64 ? 'hex' : 'base64url').toString('base64url');
      expectInvalidGrant(await use(`dev:${secret.slice(0, 22)}.${secret}`));
      expectInvalidGrant(await use(current.replace(/[^.]*$/, secret)));
      const [family, ...secrets] = [
        refresh_token.split(/[:.]/)[1],
        ...[refresh_token, current].map((each) => each.split('.')[1]),
      ];
      for (const part of [family, ...secrets]) expect(JSON.stringify(row)).not.toContain(part);
    }
  });

  it('by a token that the session never had ends the session, and a malformed token or one of another region ends nothing', async () => {
    const { access_token, refresh_token } = await stayOf(service);
    const unknown = `dev:${'x'.repeat(22)}.${'x'.repeat(43)}`;
    const otherRegion = refresh_token.replace(/^\w+/, 'other');
    for (const malformed of [`${refresh_token}x`, `${refresh_token} `, otherRegion, unknown])
      expectInvalidGrant(await use(malformed));
    expect(await infoStatus(service, access_token)).toBe(200);
    expectInvalidGrant(await use(`${refresh_token.slice(0, -43)}${'x'.repeat(43)}`));
    expectInvalidGrant(await use(refresh_token));
    expect(await infoStatus(service, access_token)).toBe(401);
  });

  it('is not limited by the number of rotations', async () => {
    const token = await rotate((await stayOf(service)).refresh_token, 70);
    expect((await use(token)).status).toBe(200);
  });

  it.each<[string, number]>([
    ['the predecessor whose successor was used', 2],
    ['a token before the predecessor', 3],
    ['the first token after many rotations', 8],
  ])('by %s ends the session, from the same network and at once', async (_, rotations) => {
    const { entity_id, access_token, refresh_token } = await stayOf(service, undefined, {}, NETWORK);
    const last = (await use(await rotate(refresh_token, rotations - 1))).body;
    const further = await stayOf(service, last.access_token);
    expectInvalidGrant(await use(refresh_token));
    expectInvalidGrant(await use(last.refresh_token));
    for (const token of [access_token, last.access_token, further.access_token])
      expect(await infoStatus(service, token)).toBe(401);
    expectInvalidGrant(await use(further.refresh_token));
    const [event] = service.audit.filter(({ event: name }) => name === 'refresh_token.replayed').slice(-1);
    expect(event).toMatchObject({ outcome: 'failure', subject: { kind: 'customer', id: entity_id } });
    expect(event?.details).toEqual({ session: sidOf(access_token) });
  });

  it('gets one successor in each response when 12 uses race', async () => {
    let token = (await stayOf(service, undefined, {}, NETWORK)).refresh_token;
    for (const each of [service, other]) delaySelects(each);
    for (let round = 0; round < 5; round++) {
      const racing = token;
      const responses = await times(12, (index) => refreshCustomer(index % 2 ? service : other, racing, {}, NETWORK));
      const successors = new Set(responses.map((response) => response.body.refresh_token));
      expect(successors.size).toBe(1);
      [token] = (await currentOf(service, [...successors])) as [string];
    }
    expect((await use(token)).status).toBe(200);
  });
});

it('protocol §9.2: the refresh tokens of a customer are listed for the operator, the one used last first, and each can be ended alone', async () => {
  const first = await stayOf(service);
  const second = await stayOf(service, first.access_token);
  service.clock.advance({ seconds: 60 });
  await use(second.refresh_token);
  const listed = async () => (await asOperator('GET', first.entity_id)).body.refresh_tokens;
  const [one, other] = [sidOf(first.access_token), sidOf(second.access_token)];
  const families: { id: string }[] = await listed();
  expect(families.map(({ id }) => id)).toEqual([other, one]);
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(families[0]).toEqual({
    id: expect.any(String),
    client_id: 'acme-site',
    last_used_at: time,
    expires_at: time,
  });
  const path = `${first.entity_id}/refresh-tokens/${other}`;
  expect((await asOperator('DELETE', path)).status).toBe(200);
  expect(await listed()).toMatchObject([{ id: one }]);
  expect(await infoStatus(service, second.access_token)).toBe(401);
  expect((await use(first.refresh_token)).status).toBe(200);
  expect((await asOperator('DELETE', path)).status).toBe(404);
  const ofOther = sidOf((await stayOf(service)).access_token);
  for (const id of [ofOther, 'x'])
    expect((await asOperator('DELETE', `${first.entity_id}/refresh-tokens/${id}`)).status).toBe(404);
  const [event] = service.audit.filter(({ event: name }) => name === 'token.revoked').slice(-1);
  expect(event).toMatchObject({ actor: { kind: 'operator' }, subject: { kind: 'token', id: other } });
});

describe('the purge of customers with refresh tokens', () => {
  it('leaves a refresh token ended after its entry was purged', async () => {
    const { access_token } = await newCustomer(service);
    const moved = await stayOf(service, access_token);
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    service.passDays(20);
    await purge(service);
    const sid = sidOf(moved.access_token);
    expect(await service.rowsOf(Ended).countBy({ value: sid })).toBe(0);
    expectInvalidGrant(await refreshCustomer(service, moved.refresh_token));
    expect(await sessionsIn(service).countBy({ id: sid })).toBe(0);
  });

  it('retains a customer whose browser is idle while a refresh token leads to it', async () => {
    let { entity_id, refresh_token } = await stayOf(service);
    for (let month = 0; month < 30; month++) {
      service.passDays(28);
      refresh_token = (await refreshCustomer(service, refresh_token)).body.refresh_token;
    }
    await purge(service);
    expect((await refreshCustomer(service, refresh_token)).body.entity_id).toBe(entity_id);
    expect(await identitiesOf(service).countBy({ entityId: entity_id })).toBe(1);
  });

  it('does not retain a customer for a refresh token that has ended with all sessions', async () => {
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

const MAX_DEVICES = 20;

describe('protocol §3.10: the devices by transfer of a customer', () => {
  /** A customer that has as many devices as it may have. */
  async function allDevicesOf(at: TestService): Promise<[Stay, ...Stay[]]> {
    const { access_token } = await newCustomer(at);
    const devices: Stay[] = [];
    while (devices.length < MAX_DEVICES) devices.push(await stayOf(at, access_token));
    return devices as [Stay, ...Stay[]];
  }
  const expectTooMany = (response: TestResponse) => {
    expectError(response, { status: 429, error: 'temporarily_unavailable', hint: /end_sessions/ });
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  };

  it('are at most 20: a further one gets 429 with a hint, and its transfer token stays usable', async () => {
    const [first, ...others] = await allDevicesOf(service);
    const move = await moveOf(service, first.access_token);
    expectTooMany(await stay(service, move));
    for (const { refresh_token } of others) expect((await use(refresh_token)).status).toBe(200);
    const last = others.at(-1) as Stay;
    await asOperator('DELETE', `${last.entity_id}/refresh-tokens/${sidOf(last.access_token)}`);
    expect((await stay(service, move)).status).toBe(200);
    expectTooMany(await stay(service, await moveOf(service, first.access_token)));
  });

  it('lose the one used longest ago, if that was more than 30 days ago, to a further one', async () => {
    const environment = { REFRESH_TOKEN_TTL: String(60 * DAY_SECONDS) };
    const long = await serviceOfTest({ registry: refreshingRegistry(), environment });
    const [oldest, ...others] = await allDevicesOf(long);
    long.passDays(10);
    for (const device of others) Object.assign(device, (await refreshCustomer(long, device.refresh_token)).body);
    const beginFurther = async () => {
      const [device] = others as [Stay];
      Object.assign(device, (await refreshCustomer(long, device.refresh_token)).body);
      return stay(long, await moveOf(long, device.access_token));
    };
    long.passDays(20);
    expectTooMany(await beginFurther());
    long.passDays(1);
    const further = await beginFurther();
    expect(further.status).toBe(200);
    expectInvalidGrant(await refreshCustomer(long, oldest.refresh_token));
    for (const { refresh_token } of [...others, further.body as Stay])
      expect((await refreshCustomer(long, refresh_token)).status).toBe(200);
  });
});
