import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { RefreshFamily } from '../../../src/refresh-token/refresh-family.entity.js';
import { claimsOf, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import {
  currentOf,
  familiesOf,
  refreshCustomer,
  refreshingRegistry,
  stay,
  stayOf,
} from '../../support/customer-refresh.js';
import { expectError, expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { times } from '../../support/races.js';
import { moveOf } from '../../support/remember.js';
import { statementsOf } from '../../support/statements.js';
import { ACME_NATIVE, PUBLIC_SITE } from '../../support/test-registry.js';
import { agentTokenPair, ageRotation, infoStatus, newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const REFRESH_TOKEN_TTL_SECONDS = 86_400;
const NETWORK = { 'x-forwarded-for': '203.0.113.7' };
const OTHER_NETWORK = { 'x-forwarded-for': '203.0.113.8' };

const service = useService({
  registry: refreshingRegistry(),
  environment: { TRUST_PROXY: '1', REFRESH_TOKEN_TTL: String(REFRESH_TOKEN_TTL_SECONDS) },
});

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
    expect((await use(refresh_token)).status).toBe(200);
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

  it('is not accepted at /v2/token from its own client either', async () => {
    const first = await newCustomer(service);
    const moved = await moveOf(service, first.access_token, { client_id: ACME_NATIVE });
    const own = (await stay(service, moved, { client_id: ACME_NATIVE })).body;
    const asNative = { grant_type: 'refresh_token', client_id: ACME_NATIVE, refresh_token: own.refresh_token };
    expectInvalidGrant(await service.post('/v2/token', asNative));
    expect((await use(own.refresh_token, { client_id: ACME_NATIVE })).status).toBe(200);
  });

  it('gets invalid_request if it is missing, empty or a list', async () => {
    for (const refresh_token of [undefined, '', ['x']])
      expectInvalidRequest(await service.post('/v2/customer/token', body({ refresh_token })), /^refresh_token: /);
  });

  it('gets invalid_grant if it is unknown', async () => {
    expectInvalidGrant(await use(`dev:${'x'.repeat(22)}.${'x'.repeat(43)}`));
    expectInvalidGrant(await use(`dev:${'x'.repeat(43)}`));
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
  it.each([0, 119])('after %i s from the same network gets the same successor', async (seconds) => {
    const { refresh_token } = await stayOf(service, undefined, {}, NETWORK);
    const lost = (await use(refresh_token)).body;
    if (seconds > 0) await ageRotation(service, refresh_token, seconds);
    const again = (await use(refresh_token)).body;
    expect(again.refresh_token).toBe(lost.refresh_token);
    expect((await use(again.refresh_token)).status).toBe(200);
    expect(await infoStatus(service, lost.access_token)).toBe(200);
  });

  it('within 30 s from another network gets the same successor', async () => {
    const { refresh_token } = await stayOf(service, undefined, {}, NETWORK);
    const first = (await use(refresh_token)).body;
    const again = await use(refresh_token, {}, OTHER_NETWORK);
    expect(again.body.refresh_token).toBe(first.refresh_token);
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
    for (const malformed of [`${refresh_token}x`, refresh_token.replace(/^\w+/, 'other')])
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

  it('is limited also if the clock of the database is set back', async () => {
    const token = await rotate((await stayOf(service)).refresh_token, 60);
    await ageRotation(service, token, -7_200);
    expect((await use(token)).status).toBe(429);
  });

  it.each([
    ['after 121 s', 121, NETWORK],
    ['after 31 s from another network', 31, OTHER_NETWORK],
  ])('%s ends the family', async (_, seconds, headers) => {
    const { entity_id, access_token, refresh_token } = await stayOf(service, undefined, {}, NETWORK);
    const next = (await use(refresh_token)).body;
    if (seconds > 0) await ageRotation(service, refresh_token, seconds);
    expectInvalidGrant(await use(refresh_token, {}, headers));
    expectInvalidGrant(await use(next.refresh_token));
    for (const token of [access_token, next.access_token]) expect(await infoStatus(service, token)).toBe(401);
    const [event] = service.audit.filter(({ event: name }) => name === 'refresh_token.replayed').slice(-1);
    expect(event).toMatchObject({ outcome: 'failure', subject: { kind: 'customer', id: entity_id } });
  });

  it('gets one successor in each response when 12 uses race', async () => {
    let token = (await stayOf(service, undefined, {}, NETWORK)).refresh_token;
    for (let round = 0; round < 5; round++) {
      const racing = token;
      const responses = await times(12, () => use(racing));
      const successors = new Set(responses.map((response) => response.body.refresh_token));
      expect(successors.size).toBe(1);
      [token] = (await currentOf(service, [...successors])) as [string];
    }
    expect((await use(token)).status).toBe(200);
  });
});

describe('protocol §9.2: the refresh families of a customer', () => {
  it('are listed for the operator, the one used last first, and each can be ended alone', async () => {
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
    const [event] = service.audit.filter(({ event: name }) => name === 'token.revoked').slice(-1);
    expect(event).toMatchObject({ actor: { kind: 'operator' }, subject: { kind: 'token', id: other } });
  });

  it('are unknown if they do not lead to the customer', async () => {
    const [one, other] = [await stayOf(service), await stayOf(service)];
    for (const id of [familyOf(other.access_token), randomUUID(), 'x'])
      expect((await asOperator('DELETE', `${one.entity_id}/refresh-families/${id}`)).status).toBe(404);
    expect((await use(other.refresh_token)).status).toBe(200);
  });

  it('are not listed after an ancestor has ended', async () => {
    const { entity_id, access_token } = await stayOf(service);
    const descendant = await stayOf(service, access_token);
    await service.send('DELETE', '/v2/customer/token', bearer(access_token));
    const { refresh_families } = (await asOperator('GET', entity_id)).body;
    const ids = refresh_families.map(({ id }: { id: string }) => id);
    expect(ids).toEqual([familyOf(access_token)]);
    expect(ids).not.toContain(familyOf(descendant.access_token));
  });
});

function body(more: object): object {
  return { grant_type: 'refresh_token', client_id: 'acme-site', ...more };
}
