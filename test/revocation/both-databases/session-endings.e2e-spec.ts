import { describe, expect, it, vi } from 'vitest';
import { Ended } from '../../../src/feed/ended.entity.js';
import { RevocationLimit } from '../../../src/feed/revocation-limit.js';
import { Database } from '../../../src/platform/database/database.js';
import { Session } from '../../../src/session/session.entity.js';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { PROOF, PROOF_SCOPE, proofExtension } from '../../support/proof-extension.js';
import { moveOf, remember } from '../../support/remember.js';
import { addCopies } from '../../support/session-copies.js';
import { ACME, ACME_ORIGIN, ACME_SITE, changed } from '../../support/test-registry.js';
import { infoStatus, newCustomer, TRANSFER, transferBody } from '../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const SCOPES = ['customers:own', PROOF_SCOPE];
const BY_TRANSFER_COUNT = 200;

const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
registry.clients = changed(registry.clients, [ACME_SITE], {
  grant_types: ['cookie', 'identity_token', 'refresh_token', 'agent_token', 'test_proof', 'test_proof_of_agent'],
  scopes: SCOPES,
});
registry.agents = registry.agents.map((agent: object) => ({ ...agent, scopes: SCOPES }));
const service = useService({ ...proofExtension, registry, environment: { RATE_LIMIT: 'off' } });

const entriesOf = (value: string) => service.rowsOf(Ended).findBy({ kind: 'session', value });
const sessionOf = (token: string) => claimsOf(token).sid as string;
const endToken = (token: string) => service.send('DELETE', TOKEN, bearer(token));
const revoke = (token: string) => service.post('/v2/customer/revoke', { client_id: ACME_SITE, token });
const proofOf = async (token: string, more: object = {}) => (await service.post(PROOF, more, bearer(token))).body.code;
const redeemProof = (code: string, more: object = {}, headers = {}) =>
  service.post(TOKEN, { grant_type: 'test_proof', client_id: ACME_SITE, code, ...more }, headers);
const transferStatus = async (token: string) => (await service.post(TRANSFER, transferBody(), bearer(token))).status;
const forget = (cookie: string) =>
  service.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie, origin: ACME_ORIGIN });

describe('protocol §7.6: the entry of a session', () => {
  it('is written for a refresh token that was only retried on the last day', async () => {
    const { refresh_token } = await stayOf(service);
    await refreshCustomer(service, refresh_token);
    service.passDays(5);
    const retried = (await refreshCustomer(service, refresh_token)).body;
    expect((await revoke(retried.refresh_token)).status).toBe(200);
    expect(await infoStatus(service, retried.access_token)).toBe(401);
    expect(await entriesOf(sessionOf(retried.access_token))).toHaveLength(1);
  });

  it('stays in the feed when a later ending of the session is beyond the limit of revocations', async () => {
    const { access_token, refresh_token } = await stayOf(service);
    const sid = sessionOf(access_token);
    expect((await endToken(access_token)).status).toBe(200);
    const isPublished = async () => (await entriesOf(sid))[0]?.publishedUntil;
    await expect.poll(isPublished).toBeInstanceOf(Date);
    const [published] = await entriesOf(sid);
    vi.spyOn(service.application.get(RevocationLimit), 'admit').mockReturnValue(undefined);
    const next = (await refreshCustomer(service, refresh_token)).body.refresh_token;
    await refreshCustomer(service, next);
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
    expect(await entriesOf(sid)).toEqual([published]);
  });
});

describe('protocol §7.6: the end of a proof', () => {
  it('is in the feed only if the proof was redeemed, because no token is of its session before', async () => {
    const { access_token } = await newCustomer(service);
    const [redeemed, open] = [await proofOf(access_token), await proofOf(access_token)];
    const token = (await redeemProof(redeemed)).body.access_token;
    const idsOf = async () => (await service.rowsOf(Session).findBy({ kind: 'proof' })).map(({ id }) => id);
    const before = await idsOf();
    expect(before).toHaveLength(2);
    expect((await endToken(access_token)).status).toBe(200);
    expect(await idsOf()).toEqual([]);
    expect(open).toBeDefined();
    const entries = await Promise.all(before.map(entriesOf));
    expect(entries.flat()).toMatchObject([{ value: sessionOf(token), reason: 'ancestor_revoked' }]);
  });
});

describe('the end of a customer’s sessions during the first request of a day', () => {
  it('leaves the customer known to agents', async () => {
    const { entity_id } = await newCustomer(service);
    service.passDays(2);
    const agent = bearer(await issueAgentToken(service));
    const database = service.application.get(Database);
    const execute = database.execute.bind(database);
    vi.spyOn(database, 'execute').mockImplementationOnce(async (...statement) => {
      expect((await endSessionsAsOperator(service, ADMIN_TOKEN, entity_id)).status).toBe(200);
      return execute(...statement);
    });
    expect((await service.post(TOKEN, agentTokenBody({ entity_id }), agent)).status).toBe(200);
    expect((await service.post(TOKEN, agentTokenBody({ entity_id }), agent)).body.entity_id).toBe(entity_id);
  });
});

describe('protocol §10.7: a proof', () => {
  it.each([
    ['of a token with a session', async () => (await newCustomer(service)).access_token],
    [
      'of a token without a session',
      async () => {
        const agent = await issueAgentToken(service);
        return (await service.post(TOKEN, agentTokenBody(), bearer(agent))).body.access_token;
      },
    ],
  ])('%s is refused after the token was ended, also if the token had expired before', async (_, newToken) => {
    const token = await newToken();
    const proof = await proofOf(token);
    service.clock.advance({ seconds: 28_801 });
    expect((await endToken(token)).status).toBe(200);
    expectInvalidGrant(await redeemProof(proof));
  });

  it.each([
    ['an agent', async (agent: string, customer_id: string) => proofOf(agent, { customer_id })],
    [
      'a customer token that an agent obtained',
      async (agent: string, entity_id: string) =>
        proofOf((await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agent))).body.access_token),
    ],
  ])('of %s is refused to another token of the agent, whose end would not reach it', async (_, newProof) => {
    const scope = SCOPES.join(' ');
    const [agent, other] = [await issueAgentToken(service, { scope }), await issueAgentToken(service, { scope })];
    const proof = await newProof(agent, (await newCustomer(service)).entity_id);
    const ofAgent = { grant_type: 'test_proof_of_agent' };
    expectInvalidGrant(await redeemProof(proof, ofAgent, bearer(other)));
  });
});

it('protocol §3.10: a session that has expired makes nothing, also after its browser has visited again', async () => {
  const browser = new TestBrowser(service);
  const { access_token } = (await browser.visit()).body;
  const expiresAt = new Date(service.clock.now() - 1_000);
  await service.rowsOf(Session).update({ id: sessionOf(access_token) }, { expiresAt });
  expect(await transferStatus(access_token)).toBe(400);
  await browser.visit();
  expect(await transferStatus(access_token)).toBe(400);
});

it('protocol §3.10: devices that browsers forgot count among the sessions by transfer', async () => {
  const { entity_id: customerId, access_token } = await newCustomer(service);
  await forget(cookieHeader(await remember(service, await moveOf(service, access_token))));
  const forgotten = await service.rowsOf(Session).findOneByOrFail({ customerId, kind: 'transferred' });
  await addCopies(service, forgotten, BY_TRANSFER_COUNT - 2);
  expect(await transferStatus(access_token)).toBe(200);
  expect(await transferStatus(access_token)).toBe(429);
});
