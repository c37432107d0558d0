import { describe, expect, it } from 'vitest';
import { agentTokenBody, exchangeCode, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser, codeOf, FOR_CODE, implicitToken } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { ACME } from '../support/test-registry.js';
import { INFO, newCustomer, redeem, TRANSFER, transferBody } from '../support/transfers.js';
import { both, inTurn, other, pods, startBothReleases, testEnvironment } from './both-releases.js';
import { createAgent, manage, type Release } from './upgrade-test-environment.js';

startBothReleases();

describe.each<Release>([1, 2])(
  'protocol §9.6: an agent who starts at release %i while both releases run',
  (release) => {
    it('signs in, gets a code and tokens, and refreshes them at processes in turn', async () => {
      const front = { url: pods[release].url };
      const browser = new AgentBrowser(front);
      const page = await browser.open(FOR_CODE);
      front.url = other(release).url;
      const agent = await createAgent(pods[release], `agent-${release}@acme.example`);
      const response = await browser.submit(page, { email: agent.email, password: agent.password });
      expect(response.status).toBe(303);
      front.url = pods[release].url;
      const code = await codeOf(browser);
      let pair = (await exchangeCode(other(release), code)).body;
      for (let round = 0; round < 4; round++) {
        const refreshed = await refresh(inTurn(round), pair.refresh_token);
        expect(refreshed.status).toBe(200);
        pair = refreshed.body;
        for (const pod of both())
          expect((await pod.post(TOKEN, agentTokenBody(), bearer(pair.access_token))).status).toBe(200);
      }
    });

    it('moves a customer of the other release, whose token is valid at each process', async () => {
      const { entity_id } = await newCustomer(other(release));
      const token = await implicitToken(pods[release]);
      const body = transferBody({ bearer_type: 'agent', customer_id: entity_id });
      for (const creator of both()) {
        for (const redeemer of both()) {
          const transfer = await creator.post(TRANSFER, body, bearer(token));
          const moved = await redeem(redeemer, transfer.body.identity_transfer_token);
          expect([moved.status, moved.body.entity_id]).toEqual([200, entity_id]);
          for (const pod of both())
            expect((await pod.send('GET', INFO, bearer(moved.body.access_token))).body.entity_id).toBe(entity_id);
        }
      }
    });
  },
);

describe('protocol §9.6: the registry while processes of both releases run', () => {
  it('reaches every process when processes of both releases change it right after each other', async () => {
    const third = await testEnvironment.start(2);
    const created: string[] = [];
    for (let round = 0; round < 4; round++) {
      for (const [release, pod] of both().entries()) {
        const client_id = `client-${round}-${release}`;
        const client = { client_id, name: client_id, client_type: 'web', organization_id: ACME, redirect_uris: [] };
        expect((await manage(pod, 'POST', '/admin/clients', client)).status).toBe(201);
        created.push(client_id);
      }
    }
    for (const pod of [...both(), third])
      for (const client_id of created)
        await expect
          .poll(async () => (await pod.post(TOKEN, cookieBody({ client_id }))).status, { timeout: 30_000 })
          .toBe(200);
  });
});
