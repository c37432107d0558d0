import { describe, expect, it } from 'vitest';
import type { AgentSession } from '../../../src/session/agent/agent-session.entity.js';
import { agentTokenBody, claimsOf, exchangeCode, newAgent, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { AgentBrowser, codeOf, FOR_CODE } from '../../support/authorization-page.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import { applyRegistry } from '../../support/registry-files.js';
import { delaySelects, statementsOf } from '../../support/statements.js';
import { ACME_AGENT, changed, PUBLIC_SITE, RIVAL_AGENT } from '../../support/test-registry.js';
import { agentSessionsIn, agentTokenPair, infoStatus, newCustomer, sessionsIn } from '../../support/transfers.js';
import { DAY_SECONDS, useService } from '../../support/use-service.js';

const PASSWORD = 'a password of the agent';

const service = useService({ registry: refreshingRegistry() });
/** Another process on the same database. */
const other = useService(() => ({ registry: refreshingRegistry(), database: service.database }));

const sidOf = (accessToken: string) => claimsOf(accessToken).sid as string;
const rowOf = (accessToken: string) => agentSessionsIn(service).findOneBy({ id: sidOf(accessToken) });
const endTokens = (agentToken: string) => service.send('DELETE', '/v2/token', bearer(agentToken));
const customerTokenOf = async (agentToken: string): Promise<string> =>
  (await service.post(TOKEN, agentTokenBody(), bearer(agentToken))).body.access_token;
const isAgentValid = async (agentToken: string) =>
  (await service.post(TOKEN, agentTokenBody(), bearer(agentToken))).status === 200;

/** A customer's refresh token that an agent obtained, by a customer token or by a transfer of its own. */
const stayOfAgent = async (agentToken: string, by: 'token' | 'transfer') => {
  if (by === 'token') return stayOf(service, await customerTokenOf(agentToken));
  const { entity_id } = await newCustomer(service);
  return stayOf(service, agentToken, { bearer_type: 'agent', customer_id: entity_id });
};

describe('protocol §3.9: a repeated use of an agent’s refresh token', () => {
  it.each([120, 29 * DAY_SECONDS])(
    'that its successor has not followed gets the same successor after %d s',
    async (seconds) => {
      const { refresh_token } = await agentTokenPair(service);
      const lost = (await refresh(service, refresh_token)).body;
      service.clock.advance({ seconds });
      const again = (await refresh(service, refresh_token)).body;
      expect(again.refresh_token).toBe(lost.refresh_token);
      expect(await isAgentValid(again.access_token)).toBe(true);
      expect((await refresh(service, again.refresh_token)).status).toBe(200);
    },
  );

  it('ends the session if the successor was used, with all that was obtained with it, at any depth', async () => {
    const pair = await agentTokenPair(service);
    const obtained = [await stayOfAgent(pair.access_token, 'token'), await stayOfAgent(pair.access_token, 'transfer')];
    const next = (await refresh(service, pair.refresh_token)).body;
    const last = (await refresh(service, next.refresh_token)).body;
    const unrelated = await agentTokenPair(service);
    expectInvalidGrant(await refresh(service, pair.refresh_token));
    expectInvalidGrant(await refresh(service, last.refresh_token));
    for (const { access_token } of [pair, next, last]) expect(await isAgentValid(access_token)).toBe(false);
    for (const { access_token, refresh_token } of obtained) {
      expect(await infoStatus(service, access_token)).toBe(401);
      expectInvalidGrant(await refreshCustomer(service, refresh_token));
    }
    expect(await isAgentValid(unrelated.access_token)).toBe(true);
    const [event] = service.audit.filter(({ event: name }) => name === 'refresh_token.replayed').slice(-1);
    expect(event).toMatchObject({ outcome: 'failure', details: { session: sidOf(pair.access_token) } });
  });

  it('gets one successor in each response when 12 uses race', async () => {
    let token = (await agentTokenPair(service)).refresh_token;
    for (const each of [service, other]) delaySelects(each);
    for (let round = 0; round < 5; round++) {
      const racing = token;
      const responses = await times(12, (index) => refresh(index % 2 ? service : other, racing));
      const successors = new Set<string>(responses.map((response) => response.body.refresh_token));
      expect(successors.size).toBe(1);
      [token] = [...successors] as [string];
    }
    expect((await refresh(service, token)).status).toBe(200);
  });

  it('cannot be computed from the row of the session, even with the constant part', async () => {
    for (const column of ['refreshIdHash', 'currentHash', 'previousHash', 'successorNonce'] as const) {
      const pair = await agentTokenPair(service);
      const current: string = (await refresh(service, pair.refresh_token)).body.refresh_token;
      const stored = ((await rowOf(pair.access_token)) as AgentSession)[column] as string;
      const secret = Buffer.from(stored, stored.length === 64 ? 'hex' : 'base64url').toString('base64url');
      expectInvalidGrant(await refresh(service, `dev:${secret.slice(0, 22)}.${secret}`));
      expectInvalidGrant(await refresh(service, current.replace(/[^.]*$/, secret)));
    }
  });

  it('costs two SELECTs and one UPDATE', async () => {
    const { refresh_token } = await agentTokenPair(service);
    const statements = await statementsOf(service, () => refresh(service, refresh_token));
    expect(statements.map((text) => text.trim().split(/\s/, 1)[0])).toEqual(['SELECT', 'SELECT', 'UPDATE']);
  });
});

describe('protocol §3.10: the session of an agent', () => {
  it('ends its tokens with what was obtained with them so far, and not what is obtained with the next one', async () => {
    const { access_token, refresh_token } = await agentTokenPair(service);
    const obtained = [await stayOfAgent(access_token, 'token'), await stayOfAgent(access_token, 'transfer')];
    expect((await endTokens(access_token)).status).toBe(200);
    for (const { access_token: token, refresh_token: device } of obtained) {
      expect(await infoStatus(service, token)).toBe(401);
      expectInvalidGrant(await refreshCustomer(service, device));
    }
    const next = (await refresh(service, refresh_token)).body;
    expect(claimsOf(next.access_token)).toMatchObject({ sid: sidOf(access_token), ep: 1 });
    const later = await stayOfAgent(next.access_token, 'transfer');
    expect((await endTokens(access_token)).status, 'it has ended').toBe(401);
    expect(await infoStatus(service, later.access_token)).toBe(200);
  });

  it('ends with everything when the agent changes or is deleted: the page, codes, tokens and refresh tokens', async () => {
    for (const change of ['PATCH', 'DELETE'] as const) {
      const { path, email, id } = await newAgent(service);
      const agent = { email, password: PASSWORD };
      const browser = new AgentBrowser(service);
      await browser.signIn(agent, FOR_CODE);
      const pair = (await exchangeCode(service, await codeOf(browser))).body;
      const unused = await codeOf(browser);
      const token = await issueAgentToken(service, { email });
      const { access_token } = await stayOfAgent(pair.access_token, 'transfer');
      const kinds = (await agentSessionsIn(service).findBy({ agentId: id })).map(({ kind }) => kind);
      expect(kinds.sort()).toEqual(['code', 'page', 'refresh', 'token']);
      expect(
        (await service.admin(change, path, change === 'PATCH' ? { password: 'another password' } : undefined)).status,
      ).toBe(200);
      expect(await agentSessionsIn(service).countBy({ agentId: id })).toBe(0);
      for (const each of [pair.access_token, token]) expect(await isAgentValid(each)).toBe(false);
      expect(await infoStatus(service, access_token)).toBe(401);
      expectInvalidGrant(await exchangeCode(service, unused));
      expectInvalidGrant(await refresh(service, pair.refresh_token));
      expect((await browser.open(FOR_CODE)).text).toContain('Sign in');
    }
  });

  it('ends when the registry file gives several agents a new password', async () => {
    const registry = refreshingRegistry();
    const emails = [ACME_AGENT.email, RIVAL_AGENT.email];
    const tokens = [
      await issueAgentToken(service),
      await issueAgentToken(service, { email: RIVAL_AGENT.email, clientId: PUBLIC_SITE }),
    ];
    await applyRegistry(service, {
      ...registry,
      agents: changed(registry.agents, emails, { password: 'another password' }),
    });
    for (const token of tokens) expect(await rowOf(token)).toBeNull();
    await applyRegistry(service, registry);
  });

  it('is one of at most 1,000 that have not expired: a further one gets 429', async () => {
    const { email, id } = await newAgent(service);
    const token = await issueAgentToken(service, { email });
    const row = (await rowOf(token)) as AgentSession;
    const rows = Array.from({ length: 998 }, (_, number) => ({ ...row, id: `${id}-${number}` }));
    for (let at = 0; at < rows.length; at += 100) await agentSessionsIn(service).insert(rows.slice(at, at + 100));
    const browser = new AgentBrowser(service);
    expect((await browser.signIn({ email, password: PASSWORD }, FOR_CODE)).status).toBe(200);
    const response = await browser.open(FOR_CODE);
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '60']);
    await agentSessionsIn(service).update({ id: `${id}-0` }, { expiresAt: new Date(service.clock.now()) });
    expect(await codeOf(browser)).toBeDefined();
  });

  it('is purged when it has expired if it is an unredeemed code or a sign-in at the page', async () => {
    const { email, id } = await newAgent(service);
    const browser = new AgentBrowser(service);
    await browser.signIn({ email, password: PASSWORD }, FOR_CODE);
    await codeOf(browser);
    const kinds = async () => (await agentSessionsIn(service).findBy({ agentId: id })).map(({ kind }) => kind).sort();
    expect(await kinds()).toEqual(['code', 'page']);
    service.clock.advance({ seconds: 3_600 });
    await purge(service);
    expect(await kinds()).toEqual(['page']);
    service.clock.advance({ seconds: 8 * 3_600 });
    await purge(service);
    expect(await kinds()).toEqual([]);
  });

  it('is purged two days after it has expired, unless something refers to it that was obtained with it', async () => {
    const [used, unused] = [await agentTokenPair(service), await agentTokenPair(service)];
    const device = await stayOfAgent(used.access_token, 'transfer');
    service.passDays(20);
    const { refresh_token } = (await refreshCustomer(service, device.refresh_token)).body;
    service.passDays(11);
    await purge(service);
    expect(await rowOf(unused.access_token), 'a token that was obtained at the end may live on').not.toBeNull();
    service.passDays(2);
    await purge(service);
    expect(await rowOf(unused.access_token)).toBeNull();
    expect(await rowOf(used.access_token)).not.toBeNull();
    expect((await refreshCustomer(service, refresh_token)).status).toBe(200);
    service.passDays(32);
    await purge(service);
    expect(await sessionsIn(service).countBy({ customerId: device.entity_id, kind: 'refresh' })).toBe(0);
    expect(await rowOf(used.access_token)).toBeNull();
  });
});
