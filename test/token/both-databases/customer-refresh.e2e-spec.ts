import { randomUUID } from 'node:crypto';
import { In, IsNull, type QueryResult } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { Denylist } from '../../../src/access-token/denylist.js';
import { Revocation } from '../../../src/access-token/revocation.entity.js';
import { Database } from '../../../src/platform/database/database.js';
import { sha256 } from '../../../src/platform/secret.js';
import { RefreshFamily, RefreshFamilyAncestor } from '../../../src/refresh-token/refresh-family.entity.js';
import { RefreshTokens } from '../../../src/refresh-token/refresh-tokens.js';
import { claimsOf, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import {
  currentOf,
  familiesOf,
  refreshCustomer,
  refreshingRegistry,
  rowsOf,
  stay,
  stayOf,
} from '../../support/customer-refresh.js';
import { interceptTransactions } from '../../support/dying-transactions.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant, expectLimited } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { purge } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import { moveOf } from '../../support/remember.js';
import { delaySelects, type Sender, statementsOf } from '../../support/statements.js';
import { ACME, ACME_NATIVE, PUBLIC_SITE } from '../../support/test-registry.js';
import {
  agentTokenPair,
  ageRotation,
  infoStatus,
  newCustomer,
  redeem,
  transferToken,
} from '../../support/transfers.js';
import { DAY_SECONDS, serviceOfTest, useService } from '../../support/use-service.js';

const REFRESH_TOKEN_TTL_SECONDS = 30 * DAY_SECONDS;
const NETWORK = { 'x-forwarded-for': '203.0.113.7' };
const OTHER_NETWORK = { 'x-forwarded-for': '203.0.113.8' };

const environment = { TRUST_PROXY: '1' };
const service = useService({ registry: refreshingRegistry(), environment });
/** Another process on the same database. */
const other = useService(() => ({ registry: refreshingRegistry(), environment, database: service.database }));

const asOperator = (method: string, path: string) => service.admin(method, `/admin/identities/${path}`);
const use = (token: string, more: object = {}, headers: object = NETWORK) =>
  refreshCustomer(service, token, more, headers);
async function rotate(token: string, times: number): Promise<string> {
  let current = token;
  for (let rotation = 0; rotation < times; rotation++) current = (await use(current)).body.refresh_token;
  return current;
}
const familyOf = (accessToken: string) => String(claimsOf(accessToken).jti).split('.')[0] as string;

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
    expect(familyOf(response.body.access_token)).toBe(familyOf(access_token));
    expect(await infoStatus(service, response.body.access_token)).toBe(200);
    expect((await use(response.body.refresh_token)).status).toBe(200);
  });

  it('costs three SELECT and one UPDATE', async () => {
    const { refresh_token } = await stayOf(service);
    const sent = await statementsOf(service, () => use(refresh_token));
    expect(sent).toEqual(['SELECT', 'SELECT', 'SELECT', 'UPDATE']);
  });

  it('is for clients that list the grant, and an attempt of another client ends nothing', async () => {
    const { refresh_token } = await stayOf(service);
    const unauthorized = { status: 400, error: 'unauthorized_client', hint: /^grant_type: / };
    expectError(await use(refresh_token, { client_id: PUBLIC_SITE }), unauthorized);
    expectInvalidGrant(await use(refresh_token, { client_id: ACME_NATIVE }));
    const next = await use(refresh_token);
    expect(next.status).toBe(200);
    await ageRotation(service, refresh_token, 121);
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
    ['119 s from the same network', 119, NETWORK],
    ['29 s from another network', 29, OTHER_NETWORK],
  ])('after %s gets the same successor', async (_, seconds, headers) => {
    const { refresh_token } = await stayOf(service, undefined, {}, NETWORK);
    const lost = (await use(refresh_token)).body;
    await ageRotation(service, refresh_token, seconds);
    const again = (await use(refresh_token, {}, headers)).body;
    expect(again.refresh_token).toBe(lost.refresh_token);
    expect((await use(again.refresh_token)).status).toBe(200);
    expect(await infoStatus(service, lost.access_token)).toBe(200);
  });

  it('gives another access token each time, up to the limit of token requests, and all of them end with the family', async () => {
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

  it('cannot be computed from the row of the family, even with its constant part', async () => {
    for (const column of ['familyHash', 'currentHash', 'previousHash', 'successorNonce'] as const) {
      const { entity_id, refresh_token } = await stayOf(service);
      const current = (await use(refresh_token)).body.refresh_token;
      const [row] = (await familiesOf(service, entity_id)) as [RefreshFamily];
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

  it('by a token that the family never had ends the family, and a malformed token or one of another region ends nothing', async () => {
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

  it('beyond 60 rotations an hour gets 429 and uses nothing up, and a reuse still ends the family', async () => {
    const first = (await stayOf(service)).refresh_token;
    const token = await rotate(first, 60);
    const limited = await use(token);
    expectError(limited, { status: 429, error: 'temporarily_unavailable', hint: undefined });
    const wait = Number(limited.headers.get('retry-after'));
    expect(wait > 3_000 && wait <= 3_600).toBe(true);
    await ageRotation(service, token, wait - 60);
    expect((await use(token)).status).toBe(429);
    await ageRotation(service, token, 60);
    const next = await use(token);
    expect(next.status).toBe(200);
    expectInvalidGrant(await use(first));
    expectInvalidGrant(await use(next.body.refresh_token));
  });

  it('is not limited by rotations before the clock of the database was set back by more than an hour', async () => {
    const token = await rotate((await stayOf(service)).refresh_token, 60);
    await ageRotation(service, token, -3_500);
    expect((await use(token)).status).toBe(429);
    await ageRotation(service, token, -200);
    expect((await use(token)).status).toBe(200);
  });

  it.each([3_600, -3_600])(
    'is limited to 60 in an hour also if the clock of the process moves by %i s',
    async (seconds) => {
      const token = await rotate((await stayOf(service)).refresh_token, 60);
      service.clock.advance({ seconds });
      expect((await use(token)).status).toBe(429);
      service.clock.advance({ seconds: -seconds });
      expect((await use(token)).status).toBe(429);
    },
  );

  it.each([
    ['after 121 s', 121, NETWORK],
    ['after 31 s from another network', 31, OTHER_NETWORK],
    ['after the clock of the database was set back by 121 s', -121, NETWORK],
    ['from another network after the clock of the database was set back by 31 s', -31, OTHER_NETWORK],
  ])('%s ends the family', async (_, seconds, headers) => {
    const { entity_id, access_token, refresh_token } = await stayOf(service, undefined, {}, NETWORK);
    const next = (await use(refresh_token)).body;
    await ageRotation(service, refresh_token, seconds);
    expectInvalidGrant(await use(refresh_token, {}, headers));
    expectInvalidGrant(await use(next.refresh_token));
    for (const token of [access_token, next.access_token]) expect(await infoStatus(service, token)).toBe(401);
    const [event] = service.audit.filter(({ event: name }) => name === 'refresh_token.replayed').slice(-1);
    expect(event).toMatchObject({ outcome: 'failure', subject: { kind: 'customer', id: entity_id } });
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

it('protocol §9.2: the refresh families of a customer are listed for the operator, the one used last first, and each can be ended alone', async () => {
  const first = await stayOf(service);
  const second = await stayOf(service, first.access_token);
  service.clock.advance({ seconds: 60 });
  await use(second.refresh_token);
  const listed = async () => (await asOperator('GET', first.entity_id)).body.refresh_families;
  const [one, other] = [familyOf(first.access_token), familyOf(second.access_token)];
  const families: { id: string }[] = await listed();
  expect(families.map(({ id }) => id).sort()).toEqual([one, other].sort());
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(families[0]).toEqual({
    id: expect.any(String),
    client_id: 'acme-site',
    last_used_at: time,
    expires_at: time,
  });
  const path = `${first.entity_id}/refresh-families/${other}`;
  expect((await asOperator('DELETE', path)).status).toBe(200);
  expect(await listed()).toMatchObject([{ id: one }]);
  expect(await infoStatus(service, second.access_token)).toBe(401);
  expect((await use(first.refresh_token)).status).toBe(200);
  expect((await asOperator('DELETE', path)).status).toBe(404);
  const ofOther = familyOf((await stayOf(service)).access_token);
  for (const id of [ofOther, 'x'])
    expect((await asOperator('DELETE', `${first.entity_id}/refresh-families/${id}`)).status).toBe(404);
  const [event] = service.audit.filter(({ event: name }) => name === 'token.revoked').slice(-1);
  expect(event).toMatchObject({ actor: { kind: 'operator' }, subject: { kind: 'token', id: other } });
});

describe('the purge of customers’ refresh families', () => {
  it('deletes the families that a revocation has ended before it deletes the revocation', async () => {
    const { access_token } = await newCustomer(service);
    const moved = await stayOf(service, access_token);
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    service.passDays(20);
    await purge(service);
    expect(await service.rowsOf(Revocation).countBy({ value: `${claimsOf(access_token).jti}` })).toBe(0);
    expectInvalidGrant(await refreshCustomer(service, moved.refresh_token));
    expect(await rowsOf(service, familyOf(moved.access_token))).toBe(0);
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

const families = () => service.rowsOf(RefreshFamily);

/** Inserts copies of the customer's family, each with a root of its own. Each was used a minute before the next one. */
async function addFamilies(
  entityId: string,
  count: number,
  more: (index: number) => Partial<RefreshFamily> = () => ({}),
): Promise<string[]> {
  const [family] = (await familiesOf(service, entityId)) as [RefreshFamily];
  const copies = Array.from({ length: count }, (_, index) => {
    const rotatedAt = new Date(family.rotatedAt.getTime() - (count - index) * 60_000);
    const [id, root] = [randomUUID(), randomUUID()];
    return { ...family, id, root, familyHash: sha256(id), currentHash: sha256(root), rotatedAt, ...more(index) };
  });
  for (let at = 0; at < count; at += 200) await families().insert(copies.slice(at, at + 200));
  return copies.map(({ id }) => id);
}

describe('protocol §4.8: the number of refresh families of a customer', () => {
  const idsOf = async (entityId: string) => (await familiesOf(service, entityId)).map(({ id }) => id);

  it('is at most 100: a further one deletes the family that was used longest ago', async () => {
    const first = await stayOf(service);
    const [oldest, ...others] = await addFamilies(first.entity_id, 99);
    const second = await stayOf(service, first.access_token);
    const ids = await idsOf(first.entity_id);
    const usable = [first.access_token, second.access_token].map(familyOf);
    expect(ids.sort()).toEqual([...others, ...usable].sort());
    expect(await rowsOf(service, oldest as string)).toBe(0);
    for (const { refresh_token } of [first, second])
      expect((await refreshCustomer(service, refresh_token)).status).toBe(200);
  });

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['a reuse', (id) => service.application.get(RefreshTokens).end({ id, audience: 'customer-api' })],
    ['a replay', (id) => service.application.get(Denylist).revokeFamily(id, 'customer-api')],
  ])('includes at most 100 families that %s has ended: a further device deletes the older ones', async (_, end) => {
    const { entity_id, access_token } = await stayOf(service);
    const ids = await addFamilies(entity_id, 120, (index) => ({ begunAt: new Date(index * 1000) }));
    for (const id of ids) await end(id);
    const second = await stayOf(service, access_token);
    const usable = [access_token, second.access_token].map(familyOf);
    expect((await idsOf(entity_id)).sort()).toEqual([...ids.slice(20), ...usable].sort());
  });

  it('does not count a family whose ancestor has ended, which so displaces no other device', async () => {
    const { entity_id, access_token } = await stayOf(service);
    const [oldest, ...others] = await addFamilies(entity_id, 99);
    const ancestor = claimsOf((await newCustomer(service)).access_token) as { jti: string; exp: number };
    const row = { familyId: others.at(-1) as string, ancestorId: ancestor.jti };
    await service.rowsOf(RefreshFamilyAncestor).insert(row);
    await service.application.get(Denylist).revokeToken(ancestor);
    await stayOf(service, access_token);
    expect(await idsOf(entity_id)).toContain(oldest);
    const listed = await service.admin('GET', `/admin/identities/${entity_id}`);
    expect(listed.body.refresh_families.map(({ id }: { id: string }) => id)).not.toContain(row.familyId);
  });

  it('of one root is at most 10, with links by transfer: its own oldest is replaced, without a revocation', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const thief = await redeem(service, await transferToken(service, access_token));
    const ofOthers = [await stayOf(service, access_token), await stayOf(service, access_token)];
    const ofThief = [];
    for (let at = 0; at < 12; at++) ofThief.push(await stayOf(service, thief.body.access_token));
    expect(await idsOf(entity_id)).toHaveLength(10);
    for (const each of [...ofOthers, ...ofThief.slice(-8)])
      expect((await refreshCustomer(service, each.refresh_token)).status).toBe(200);
    for (const each of ofThief.slice(0, 4)) {
      expectInvalidGrant(await refreshCustomer(service, each.refresh_token));
      expect(await infoStatus(service, each.access_token)).toBe(200);
    }
  });

  it('is not raised by a token none of whose devices could be replaced: 429, and the code stays usable', async () => {
    const { access_token } = await newCustomer(service);
    for (let at = 0; at < 10; at++) await stayOf(service, access_token);
    const other = await redeem(service, await transferToken(service, access_token));
    const moved = await moveOf(service, other.body.access_token);
    expectError(await stay(service, moved), { status: 429, error: 'temporarily_unavailable', hint: undefined });
    await service.send('DELETE', '/v2/customer/token', bearer(access_token));
    expectInvalidGrant(await stay(service, moved));
  });
});

/** The numbers of rows that the statements of a command or request read, change or delete. */
async function rowCountsOf(act: () => Promise<unknown>): Promise<number[]> {
  const database = service.application.get(Database);
  const counts: number[] = [];
  const select = database.select.bind(database);
  vi.spyOn(database, 'select').mockImplementation(async (...all) => {
    const rows = await select(...all);
    counts.push(rows.length);
    return rows as never;
  });
  const execute = database.execute.bind(database);
  vi.spyOn(database, 'execute').mockImplementation(async (...all) => {
    const changed = await execute(...all);
    counts.push(changed);
    return changed;
  });
  interceptTransactions(service, async (_, send) => {
    const result = (await send()) as QueryResult;
    counts.push(result?.records?.length ?? 0, result?.affected ?? 0);
    return result;
  });
  await act();
  vi.restoreAllMocks();
  return counts;
}

it('protocol §5.8: the statements about a customer with 1,100 refresh families read or delete at most 1,000 rows each, and those of the erasure are fewer than 60', async () => {
  const { entity_id, access_token, refresh_token } = await stayOf(service);
  const ids = await addFamilies(entity_id, 1_100);
  const rows = ids.flatMap((familyId) =>
    ['one', 'two', 'three'].map((each) => ({ familyId, ancestorId: each + familyId })),
  );
  const ancestors = service.rowsOf(RefreshFamilyAncestor);
  for (let at = 0; at < rows.length; at += 200) await ancestors.insert(rows.slice(at, at + 200));
  const counts = await rowCountsOf(async () => {
    const send = vi.spyOn(service.application.get(Database) as unknown as Sender, 'sendWithRetries');
    await service.erase(entity_id);
    expect(send.mock.calls.length).toBeLessThan(60);
    await purge(service);
  });
  expect(Math.max(...counts)).toBeGreaterThanOrEqual(500);
  expect(Math.max(...counts)).toBeLessThanOrEqual(1_000);
  expect(await familiesOf(service, entity_id)).toEqual([]);
  expect(await ancestors.countBy({ familyId: In(ids) })).toBe(0);
  expect(await infoStatus(service, access_token)).toBe(401);
  expectInvalidGrant(await refreshCustomer(service, refresh_token));
});
