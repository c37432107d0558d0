import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidGrant, expectInvalidToken } from '../support/expect-error.js';
import { figure } from '../support/measurements.js';
import type { TestResponse } from '../support/test-service.js';
import { INFO, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { type Cluster, type ClusterPod, readiness, startCluster, untilReadiness } from './cluster.js';
import { expectAway, underLoad, untilAnswered, untilServing } from './node-outages.js';

/** Milliseconds for which the others go on without a node. */
const WITHOUT = 3_000;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster('outages');
});
afterAll(() => cluster?.stop());

const info = (pod: ClusterPod, token: string): Promise<TestResponse> => pod.send('GET', INFO, bearer(token));

describe('a node of three', () => {
  it('that is killed: its pod refuses and is not ready, the others go on, and nobody is lost when it comes back', async () => {
    const [one, two, hit] = cluster.pods;
    await underLoad(cluster.pods, hit, 'a node killed', async () => {
      hit.node.kill();
      await untilReadiness(hit, 503);
      expectAway(await hit.post(TOKEN, cookieBody()));
      await Promise.all([untilServing(one), untilServing(two)]);
      await sleep(WITHOUT);
      expect(await Promise.all([one, two, hit].map(readiness))).toEqual([200, 200, 503]);
      await hit.node.start();
      figure(`its pod served ${Math.round(await untilServing(hit))} ms after the node`);
      await untilReadiness(hit, 200);
    });
  });

  it('that is frozen: its pod refuses and is not ready, the others go on, and it comes back by itself', async () => {
    const [one, hit, three] = cluster.pods;
    await underLoad(cluster.pods, hit, 'a node frozen', async () => {
      hit.node.freeze();
      await untilReadiness(hit, 503);
      await Promise.all([untilServing(one), untilServing(three)]);
      await sleep(WITHOUT);
      expectAway(await hit.post(TOKEN, cookieBody()));
      expect(await Promise.all([one, hit, three].map(readiness))).toEqual([200, 503, 200]);
      hit.node.thaw();
      figure(`its pod served ${Math.round(await untilServing(hit))} ms after the thaw`);
      await untilReadiness(hit, 200);
    });
  });

  it('that is cut off from the others: its pod refuses and is not ready, and serves again when the cut is healed', async () => {
    const [hit, two, three] = cluster.pods;
    await underLoad(cluster.pods, hit, 'a node cut off', async () => {
      await hit.node.cutOff();
      await untilReadiness(hit, 503);
      await Promise.all([untilServing(two), untilServing(three)]);
      await sleep(WITHOUT);
      expect(await Promise.all([hit, two, three].map(readiness))).toEqual([503, 200, 200]);
      expect((await hit.send('GET', '/.well-known/jwks.json')).status).toBe(200);
      await hit.node.reconnect();
      figure(`its pod served ${Math.round(await untilServing(hit))} ms after the cut was healed`);
      await untilReadiness(hit, 200);
    });
  });

  it('that is cut off never says that a token lives which has ended meanwhile, nor takes a code that was redeemed', async () => {
    const [one, two, hit] = cluster.pods;
    const { access_token } = await newCustomer(hit);
    const code = await transferToken(hit, access_token);
    await hit.node.cutOff();
    const since = performance.now();
    // one whose redemption was under way when the nodes stopped is refused from then on, and gave nothing
    expect([200, 400]).toContain((await untilAnswered(() => redeem(one, code))).status);
    expect((await untilAnswered(() => two.send('DELETE', TOKEN, bearer(access_token)))).status).toBe(200);
    figure(`a code redeemed and a token ended ${Math.round(performance.now() - since)} ms after a node was cut off`);
    for (let asked = 0; asked < 20; asked++) {
      expectAway(await info(hit, access_token));
      expectAway(await redeem(hit, code));
      expectAway(await hit.post(TOKEN, cookieBody()));
    }
    await hit.node.reconnect();
    await untilServing(hit);
    expectInvalidToken(await info(hit, access_token));
    expectInvalidGrant(await redeem(hit, code));
  });

  it('that is alone, since both others were killed, refuses until an operator makes it the first of a new quorum', async () => {
    const [one, two, alone] = cluster.pods;
    const { access_token } = await newCustomer(one);
    one.node.kill();
    two.node.kill();
    await untilReadiness(alone, 503);
    await sleep(2 * WITHOUT);
    for (const answer of [await info(alone, access_token), await alone.post(TOKEN, cookieBody())]) expectAway(answer);
    expect(await Promise.all(cluster.pods.map(readiness))).toEqual([503, 503, 503]);
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
