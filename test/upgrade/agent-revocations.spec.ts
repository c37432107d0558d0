import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { agentTokenBody, exchangeCode, refresh } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { AgentBrowser, codeOf, FOR_CODE, FOR_TOKEN, FORM, implicitToken } from '../support/authorization-page.js';
import { TOKEN } from '../support/cookie-grant.js';
import { ACME_BACKEND, BACKEND_SECRET } from '../support/test-registry.js';
import { request } from '../support/test-service.js';
import { both, inTurn, pods, startBothReleases } from './both-releases.js';
import { createAgent, manage, type Pod, type Release, type TestAgent } from './upgrade-test-environment.js';

const NEW_PASSWORD = 'a long second pass phrase';

startBothReleases();

/** Checks the status of the agent token grant with each token at each process. */
async function expectTokens(tokens: string[], status: number): Promise<void> {
  for (const pod of both())
    for (const token of tokens) expect((await pod.post(TOKEN, agentTokenBody(), bearer(token))).status).toBe(status);
}

/** Agent tokens of an agent from the pages of both releases. */
const pageTokens = (agent: TestAgent) => Promise.all(both().map((pod) => implicitToken(pod, FOR_TOKEN, agent)));

/** A token pair of an agent, from the page and the token endpoint of one process. */
async function tokenPair(pod: Pod, agent: TestAgent): Promise<{ access_token: string; refresh_token: string }> {
  const browser = new AgentBrowser(pod);
  await browser.signIn(agent, FOR_CODE);
  return (await exchangeCode(pod, await codeOf(browser))).body;
}

const pairs = (agent: TestAgent) => Promise.all(both().map((pod) => tokenPair(pod, agent)));
const newAgent = (pod: Pod) => createAgent(pod, `${randomUUID()}@acme.example`);

describe.each<Release>([1, 2])(
  'protocol §9.6: what a process of release %i ends of an agent has ended at each process',
  (release) => {
    it.each<[string, (id: string) => Promise<{ status: number }>]>([
      [
        'gets a new password',
        (id) => manage(pods[release], 'PATCH', `/admin/agents/${id}`, { password: NEW_PASSWORD }),
      ],
      ['is deleted', (id) => manage(pods[release], 'DELETE', `/admin/agents/${id}`)],
    ])('the tokens, refresh families and codes of an agent that %s', async (_, change) => {
      const agent = await newAgent(pods[release]);
      const tokens = await pageTokens(agent);
      const [one, two] = await pairs(agent);
      const browsers = both().map((pod) => new AgentBrowser(pod));
      for (const browser of browsers) await browser.signIn(agent, FOR_CODE);
      const codes = await Promise.all(browsers.map((browser) => codeOf(browser)));
      const transfer = (await pods[2].post('/v2/customer/identity_transfer', {}, bearer(tokens[1] ?? ''))).status;
      expect(transfer).toBe(400);
      await expectTokens(tokens, 200);
      expect((await change(agent.id)).status).toBeLessThan(300);
      await expectTokens([...tokens, one?.access_token ?? '', two?.access_token ?? ''], 401);
      for (const pod of both())
        for (const pair of [one, two]) expect((await refresh(pod, pair?.refresh_token ?? '')).status).toBe(400);
      for (const [index, code] of codes.entries())
        expect((await exchangeCode(inTurn(index), code)).status, `code of release ${index + 1}`).toBe(400);
    });

    it('a refresh family of either release that its client revokes', async () => {
      const agent = await newAgent(pods[release]);
      const { managementUrl } = pods[release];
      for (const { access_token, refresh_token } of await pairs(agent)) {
        const headers = { ...basic(ACME_BACKEND, BACKEND_SECRET), 'content-type': FORM };
        const body = new URLSearchParams({ token: refresh_token }).toString();
        expect((await request(`${managementUrl}/oauth2/revoke`, { method: 'POST', headers, body })).status).toBe(200);
        await expectTokens([access_token], 401);
        for (const pod of both()) expect((await refresh(pod, refresh_token)).status).toBe(400);
      }
    });

    it('a refresh family of either release, when an earlier token is used again', async () => {
      const agent = await newAgent(pods[release]);
      for (const pair of await pairs(agent)) {
        const second = (await refresh(pods[1], pair.refresh_token)).body;
        const third = (await refresh(pods[2], second.refresh_token)).body;
        await expectTokens([pair.access_token, second.access_token, third.access_token], 200);
        expect((await refresh(pods[release], pair.refresh_token)).status).toBe(400);
        await expectTokens([pair.access_token, second.access_token, third.access_token], 401);
        for (const pod of both()) expect((await refresh(pod, third.refresh_token)).status).toBe(400);
      }
    });
  },
);

describe('protocol §9.6: an agent with a new password while processes of both releases run', () => {
  it('gets valid tokens from both releases if a process of release 1 changed the password', async () => {
    const agent = await newAgent(pods[1]);
    await pageTokens(agent);
    await manage(pods[1], 'PATCH', `/admin/agents/${agent.id}`, { password: NEW_PASSWORD });
    await nextSecond();
    await expectTokens(await pageTokens({ ...agent, password: NEW_PASSWORD }), 200);
  });

  it('gets valid tokens only from release 2 if a process of release 2 changed the password', async () => {
    const agent = await newAgent(pods[2]);
    await manage(pods[2], 'PATCH', `/admin/agents/${agent.id}`, { password: NEW_PASSWORD });
    await nextSecond();
    const [ofRelease1 = '', ofRelease2 = ''] = await pageTokens({ ...agent, password: NEW_PASSWORD });
    await expectTokens([ofRelease2], 200);
    const status = async (pod: Pod) => (await pod.post(TOKEN, agentTokenBody(), bearer(ofRelease1))).status;
    expect([await status(pods[1]), await status(pods[2])]).toEqual([200, 401]);
  });
});

/** Release 1 also ends the tokens of the second in which the password was changed. */
const nextSecond = () => new Promise((resolve) => setTimeout(resolve, 1_100));
