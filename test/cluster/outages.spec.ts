import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidGrant, expectInvalidToken, expectUnavailable } from '../support/expect-error.js';
import { figure } from '../support/measurements.js';
import type { TestResponse } from '../support/test-service.js';
import { INFO, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { type ClusterPod, customerStatus, untilUnavailable, useCluster } from './cluster.js';
import { retryUntilAvailable, underOutage, untilServing } from './node-outages.js';

const OUTAGE_MS = 3_000;

const cluster = useCluster('outages');

const info = (pod: ClusterPod, token: string): Promise<TestResponse> => pod.send('GET', INFO, bearer(token));

describe('if one node of three fails', () => {
  it('by a kill, its pod responds with 503, the other pods serve, and no customer is lost', async () => {
    const [one, two, hit] = cluster.pods;
    await underOutage(cluster.pods, hit, 'a node killed', async () => {
      hit.node.kill();
      await untilUnavailable(hit);
      expectUnavailable(await hit.post(TOKEN, cookieBody()));
      await Promise.all([untilServing(one), untilServing(two)]);
      await sleep(OUTAGE_MS);
      expect(await Promise.all([one, two, hit].map(customerStatus))).toEqual([200, 200, 503]);
      await hit.node.start();
      figure(`its pod served ${Math.round(await untilServing(hit))} ms after the node`);
    });
  });

  it('by a freeze, its pod responds with 503, the other pods serve, and its pod recovers without a restart', async () => {
    const [one, hit, three] = cluster.pods;
    await underOutage(cluster.pods, hit, 'a node frozen', async () => {
      hit.node.freeze();
      await untilUnavailable(hit);
      await Promise.all([untilServing(one), untilServing(three)]);
      await sleep(OUTAGE_MS);
      expectUnavailable(await hit.post(TOKEN, cookieBody()));
      expect(await Promise.all([one, hit, three].map(customerStatus))).toEqual([200, 503, 200]);
      hit.node.thaw();
      figure(`its pod served ${Math.round(await untilServing(hit))} ms after the thaw`);
    });
  });

  it('by a network partition, its pod accepts neither revoked tokens nor redeemed codes', async () => {
    const [one, two, hit] = cluster.pods;
    const { access_token } = await newCustomer(hit);
    const code = await transferToken(hit, access_token);
    await hit.node.cutOff();
    const cutOffAt = performance.now();
    // If the nodes stop during the redemption, the code is used up without a token, and later requests get 400.
    expect([200, 400]).toContain((await retryUntilAvailable(() => redeem(one, code))).status);
    expect((await retryUntilAvailable(() => two.send('DELETE', TOKEN, bearer(access_token)))).status).toBe(200);
    figure(`a code redeemed and a token ended ${Math.round(performance.now() - cutOffAt)} ms after a node was cut off`);
    for (let attempt = 0; attempt < 20; attempt++) {
      expectUnavailable(await info(hit, access_token));
      expectUnavailable(await redeem(hit, code));
      expectUnavailable(await hit.post(TOKEN, cookieBody()));
    }
    await hit.node.reconnect();
    await untilServing(hit);
    expectInvalidToken(await info(hit, access_token));
    expectInvalidGrant(await redeem(hit, code));
  });

  it('and a second one too, the last pod responds with 503 until an operator bootstraps a new quorum', async () => {
    const [one, two, alone] = cluster.pods;
    const { access_token } = await newCustomer(one);
    one.node.kill();
    two.node.kill();
    await untilUnavailable(alone);
    await sleep(2 * OUTAGE_MS);
    for (const response of [await info(alone, access_token), await alone.post(TOKEN, cookieBody())])
      expectUnavailable(response);
    expect(await Promise.all(cluster.pods.map(customerStatus))).toEqual([503, 503, 503]);
    await alone.node.bootstrap();
    figure(`alone and bootstrapped, its pod served after ${Math.round(await untilServing(alone))} ms`);
    await one.node.start();
    await two.node.start();
    for (const pod of cluster.pods) {
      await untilServing(pod);
      expect((await info(pod, access_token)).status).toBe(200);
    }
  });
});
