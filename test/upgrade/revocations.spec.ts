import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { sha256 } from '../../src/platform/secret.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { ACME } from '../support/test-registry.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { both, inTurn, pods, startBothReleases, testEnvironment } from './both-releases.js';
import { manage, type Release } from './upgrade-test-environment.js';

/** A token of the time before the migration, which no test ends. */
let earlierToken: string;

startBothReleases(async (first) => {
  earlierToken = (await newCustomer(first)).access_token;
});
afterAll(() => expectTokens([earlierToken], 200));

/** Checks the status of token info with each token at each process. */
async function expectTokens(tokens: string[], status: number): Promise<void> {
  for (const pod of both()) for (const token of tokens) expect(await infoStatus(pod, token)).toBe(status);
}

describe.each<Release>([1, 2])(
  'protocol §9.6: what a process of release %i ends has ended at each process',
  (release) => {
    it('a customer token of either release that its holder ends', async () => {
      const { access_token } = await newCustomer(pods[1]);
      const others = await Promise.all(both().map(async (pod) => (await newCustomer(pod)).access_token));
      const code = await transferToken(pods[2], access_token);
      for (const token of others) expect((await pods[release].send('DELETE', TOKEN, bearer(token))).status).toBe(200);
      await expectTokens(others, 401);
      await expectTokens([access_token], 200);
      expect((await redeem(pods[1], code)).status).toBe(200);
    });

    it('the transfer tokens that a customer token created, when its holder ends the token', async () => {
      for (const creator of both()) {
        for (const redeemer of both()) {
          const { access_token } = await newCustomer(creator);
          const code = await transferToken(creator, access_token);
          await pods[release].send('DELETE', TOKEN, bearer(access_token));
          expect((await redeem(redeemer, code)).status).toBe(400);
        }
      }
    });

    it('an erased customer, with its tokens and transfer tokens, and its browser gets one new customer', async () => {
      const first = await pods[1].post(TOKEN, cookieBody());
      const { entity_id, access_token } = first.body;
      const cookie = cookieHeader(first);
      const again = (await pods[2].post(TOKEN, cookieBody(), { cookie })).body.access_token;
      const codes = [await transferToken(pods[1], again), await transferToken(pods[2], access_token)];
      expect((await manage(pods[release], 'DELETE', `/admin/identities/${entity_id}`)).status).toBe(200);
      await expectTokens([access_token, again], 401);
      for (const [index, code] of codes.entries()) expect((await redeem(inTurn(index), code)).status).toBe(400);
      const ids: string[] = [];
      for (const pod of both()) ids.push((await pod.post(TOKEN, cookieBody(), { cookie })).body.entity_id);
      expect([ids[0], ids.includes(entity_id)]).toEqual([ids[1], false]);
    });

    it('the token of a transfer token that is replayed', async () => {
      const { access_token } = await newCustomer(pods[1]);
      for (const redeemer of both()) {
        const code = await transferToken(pods[release], access_token);
        const { body } = await redeem(redeemer, code);
        await testEnvironment.execute(
          'UPDATE one_time_code SET consumed_at = consumed_at - INTERVAL 10 SECOND WHERE hash = ?',
          [sha256(code)],
        );
        expect((await redeem(pods[release], code)).status).toBe(400);
        await expectTokens([body.access_token], 401);
      }
      await expectTokens([access_token], 200);
    });

    it('the tokens of a deleted client', async () => {
      const client_id = `client-${randomUUID()}`;
      const client = { client_id, name: 'Short-lived', client_type: 'web', organization_id: ACME, redirect_uris: [] };
      expect((await manage(pods[release], 'POST', '/admin/clients', client)).status).toBe(201);
      const tokens: string[] = [];
      for (const pod of both()) {
        const response = () => pod.post(TOKEN, cookieBody({ client_id }));
        await expect.poll(async () => (await response()).status).toBe(200);
        tokens.push((await response()).body.access_token);
      }
      expect((await manage(pods[release], 'DELETE', `/admin/clients/${client_id}`)).status).toBeLessThan(300);
      await expectTokens(tokens, 401);
    });
  },
);
