import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AccessTokens, type IssuableClaims } from '../../src/access-token/access-tokens.js';
import { RecordedValue } from '../../src/access-token/recorded-value.entity.js';
import { Revocation } from '../../src/access-token/revocation.entity.js';
import { sha256 } from '../../src/platform/secret.js';
import { Agent } from '../../src/registry/agent.entity.js';
import { createTestDatabase, type TestDatabase } from '../../src/testing/test-database.js';
import { agentTokenBody, claimsOf, exchangeCode, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectInvalidGrant } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken, purge } from '../support/operator-commands.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';
import {
  agentTokenPair,
  authorizationCode,
  codesOf,
  infoStatus,
  newCustomer,
  redeem,
  transferToken,
} from '../support/transfers.js';

const ADMIN_TOKEN = 'operator-of-the-revocations-test';
const SHORT_LIFETIMES = {
  CUSTOMER_TOKEN_TTL: '60',
  AGENT_TOKEN_TTL: '60',
  REFRESH_TOKEN_TTL: '60',
  TRANSFER_TOKEN_TTL: '60',
};

describe('lifetimes that are lowered after tokens were issued', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database?.remove());

  it('leave revoked tokens revoked for their full original lifetime', async () => {
    const before = await startTestService({ database });
    const customer = await newCustomer(before);
    const other = await newCustomer(before);
    const pair = await agentTokenPair(before);
    const replayed = await authorizationCode(before);
    const chain = (await exchangeCode(before, replayed)).body;
    await before.stop();

    const after = await startTestService({ database, environment: { ...SHORT_LIFETIMES, ADMIN_TOKEN } });
    expect((await after.send('DELETE', TOKEN, bearer(customer.access_token))).status).toBe(200);
    expect((await after.send('DELETE', '/v2/token', bearer(pair.access_token))).status).toBe(200);
    const form = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/x-www-form-urlencoded' };
    const body = new URLSearchParams({ token: pair.refresh_token }).toString();
    expect((await manage(after, 'POST', '/oauth2/revoke', form, body)).status).toBe(200);
    await manage(after, 'DELETE', `/admin/identities/${other.entity_id}`, bearer(ADMIN_TOKEN));
    await codesOf(after).update({ kind: 'authorization' }, { consumedNetwork: 'another network' });
    expectInvalidGrant(await exchangeCode(after, replayed));
    for (const seconds of [600, 20_000]) {
      after.clock.advance({ seconds });
      await purge(after);
      for (const { access_token } of [customer, other]) expect(await infoStatus(after, access_token)).toBe(401);
      expect((await after.post(TOKEN, agentTokenBody(), bearer(pair.access_token))).status).toBe(401);
      for (const { refresh_token } of [pair, chain]) expectInvalidGrant(await refresh(after, refresh_token));
    }
    await after.stop();
  });

  it('leave a descendant revoked that lives longer than its revoked ancestor', async () => {
    const before = await startTestService({ database });
    before.clock.advance({ seconds: -20_000 });
    const ancestor = await newCustomer(before);
    before.clock.reset();
    const descendant = (await redeem(before, await transferToken(before, ancestor.access_token))).body;
    await before.stop();

    const after = await startTestService({ database, environment: SHORT_LIFETIMES });
    expect((await after.send('DELETE', TOKEN, bearer(ancestor.access_token))).status).toBe(200);
    after.clock.advance({ seconds: 20_000 }); // The ancestor has expired, and the descendant has not.
    await purge(after);
    expect(await infoStatus(after, descendant.access_token)).toBe(401);
    await after.stop();
  });

  it('do not lower the recorded longest lifetime, whichever process starts last', async () => {
    const long = await startTestService({ database, environment: { CUSTOMER_TOKEN_TTL: '86400' } });
    const short = await startTestService({ database, environment: SHORT_LIFETIMES });
    const recorded = short.application.get(DataSource).getRepository(RecordedValue);
    expect(await recorded.findOneBy({ name: 'longest_access_token_life' })).toMatchObject({ value: 86_400 });
    await short.stop();
    await long.stop();
  });

  it.each(['CUSTOMER_TOKEN_TTL', 'AGENT_TOKEN_TTL'])('cannot be longer than a day: %s', async (name) => {
    await expect(startTestService({ environment: { [name]: '86401' } })).rejects.toThrow(
      `${name}: must not be greater than 86400`,
    );
  });
});

describe('the upgrade from release 1', () => {
  let service: TestService;
  let agentId: string;
  beforeAll(async () => {
    service = await startTestService({ environment: { ADMIN_TOKEN } });
    agentId = claimsOf(await issueAgentToken(service)).sub as string;
  });
  afterAll(() => service?.stop());

  const revocations = () => service.application.get(DataSource).getRepository(Revocation);
  const issue = (more: object) => {
    const claims = { client_id: ACME_SITE, organization_id: ACME, scope: 'customers:own', ...more };
    return service.application.get(AccessTokens).issue(claims as unknown as IssuableClaims, 600);
  };
  const asAgent = async (token: string) => (await service.post(TOKEN, agentTokenBody(), bearer(token))).status;
  const setGeneration = (generation: number | null) =>
    service.application.get(DataSource).getRepository(Agent).update({ id: agentId }, { generation });

  it('keeps a token without a generation valid until the generation is raised', async () => {
    const token = issue({ sub: agentId, aud: 'agent-api' });
    expect(await asAgent(token)).toBe(200);
    await setGeneration(1);
    expect(await asAgent(token)).toBe(401);
    expect(await asAgent(issue({ sub: agentId, aud: 'agent-api', gen: 1 }))).toBe(200);
    await setGeneration(null);
  });

  it('keeps a transfer token redeemable until the bearer token that created it ends', async () => {
    const customer = await newCustomer(service);
    const { jti, sub, client_id, iat } = claimsOf(customer.access_token);
    const asRelease1 = async () => {
      const code = await transferToken(service, customer.access_token);
      const [row] = await codesOf(service).find({ order: { expiresAt: 'DESC' }, take: 1 });
      await codesOf(service).update(
        { hash: row?.hash as string },
        { madeWith: JSON.stringify({ jti, sub, client_id, iat }) },
      );
      return code;
    };
    const token = (await redeem(service, await asRelease1())).body.access_token;
    expect(claimsOf(token)).toMatchObject({ gen: 0, ancestors: [jti] });
    const unused = await asRelease1();
    await service.send('DELETE', TOKEN, bearer(customer.access_token));
    expect(await infoStatus(service, token)).toBe(401);
    expectInvalidGrant(await redeem(service, unused));
  });

  it('keeps a transfer token redeemable that an agent of a trusted issuer created', async () => {
    const customer = await newCustomer(service);
    await transferToken(service, customer.access_token);
    const code = await transferToken(service, customer.access_token);
    const bearerOfIssuer = { jti: sha256('https://issuer.example 1'), sub: 'agent-7', client_id: 'crm', iat: 1 };
    await codesOf(service).update({ hash: sha256(code) }, { madeWith: JSON.stringify(bearerOfIssuer) });
    const token = (await redeem(service, code)).body.access_token;
    expect(claimsOf(token)).toMatchObject({
      act: { sub: 'agent-7', client_id: 'crm' },
      ancestors: [bearerOfIssuer.jti],
    });
    expect(await infoStatus(service, token)).toBe(200);
  });

  it('keeps a revocation of an agent in force for its tokens and the customer tokens that it obtained', async () => {
    const token = issue({ sub: agentId, aud: 'agent-api', gen: 0 });
    const pair = await agentTokenPair(service);
    const { access_token } = (await service.post(TOKEN, agentTokenBody(), bearer(token))).body;
    const now = new Date(service.clock.now() + 1_000);
    await revocations().insert({
      kind: 'subject',
      value: agentId,
      issuedBefore: now,
      expiresAt: new Date(now.getTime() + 600_000),
    });
    expect([await asAgent(token), await infoStatus(service, access_token)]).toEqual([401, 401]);
    expectInvalidGrant(await refresh(service, pair.refresh_token));
    await revocations().delete({ kind: 'subject', value: agentId });
    expect(await asAgent(token)).toBe(200);
  });
});
