import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { RACE_START_MS, race } from '../../packages/conformance-kit/src/race.js';
import { roundsOf } from '../nightly.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectInvalidGrant, expectInvalidToken, expectUnavailable } from '../support/expect-error.js';
import { figure } from '../support/measurements.js';
import { successfulOf, times } from '../support/races.js';
import type { TestResponse } from '../support/test-service.js';
import { INFO, infoStatus, newCustomer, redeem, redeemBody, transferToken } from '../support/transfers.js';
import { type ClusterPod, customerStatus, othersOf, untilUnavailable, useCluster } from './cluster.js';
import { retryUntilAvailable, underOutage, untilServing } from './node-outages.js';

/** The time of an outage after the other nodes serve again. */
const OUTAGE_MS = 3_000;
/** Longer than the time after which Galera gives a lost node up. */
const WITHOUT_QUORUM_MS = 6_000;
const CODE_COUNT = 60;
const REQUESTS_PER_RACE = 6;
/**
 * The races that start at an interval around the cut: some end before it, and some overlap it. The others start after
 * it.
 */
const EARLY_RACE_COUNT = 40;
const RACE_INTERVAL_MS = 10;
/** The nodes that are cut off during races, one after another. */
const CUT_OFF = [2, 0, 1].slice(0, roundsOf({ byDay: 1, nightly: 3 }));

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
    await sleep(WITHOUT_QUORUM_MS);
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

describe('protocol §3.6, while a node of three is cut off', () => {
  it.each(CUT_OFF)(
    `each of ${CODE_COUNT} codes, raced by ${REQUESTS_PER_RACE} requests, gives at most one token, which stays valid (node %i)`,
    async (index) => {
      const { pods } = cluster;
      const hit = pods[index] as ClusterPod;
      const [other] = othersOf(pods, hit) as [ClusterPod];
      const newCode = async () => transferToken(other, (await newCustomer(other)).access_token);
      const codes = await times(CODE_COUNT, newCode);
      const cut = sleep(RACE_START_MS + (EARLY_RACE_COUNT * RACE_INTERVAL_MS) / 2).then(() => hit.node.cutOff());
      const races = codes.map(async (code, position) => {
        await (position < EARLY_RACE_COUNT ? sleep(position * RACE_INTERVAL_MS) : cut);
        return race(pods, TOKEN, JSON.stringify(redeemBody(code)), REQUESTS_PER_RACE);
      });
      const all = await Promise.all(races);
      await untilServing(other);
      await hit.node.reconnect();
      await untilServing(hit);
      const outcomes = { won: 0, again: 0, lost: 0, unavailable: 0 };
      for (const [position, responses] of all.entries()) {
        outcomes.unavailable += countUnavailable(responses);
        const [winner, ...more] = successfulOf(responses);
        expect(more).toEqual([]);
        const second = winner ? undefined : await redeem(hit, codes[position]);
        if (second?.status === 400) expectInvalidGrant(second);
        outcomes[winner ? 'won' : second?.status === 200 ? 'again' : 'lost']++;
        const token = winner?.body.access_token ?? second?.body.access_token;
        if (token) for (const pod of pods) expect(await infoStatus(pod, token)).toBe(200);
      }
      expect(outcomes.unavailable, 'the cut must hit something').toBeGreaterThan(0);
      expect(outcomes.won + outcomes.again + outcomes.lost).toBe(CODE_COUNT);
      figure(
        `${CODE_COUNT} codes raced while node ${index + 1} was cut off: ${outcomes.won} won, ${outcomes.again} by a second try, ` +
          `${outcomes.lost} used up with a lost response; ${outcomes.unavailable} of ${CODE_COUNT * REQUESTS_PER_RACE} calls 503`,
      );
    },
  );
});

/** Checks that the protocol allows every response. Returns how many of them are 503. */
function countUnavailable(responses: TestResponse[]): number {
  for (const response of responses) {
    expect([200, 400, 503]).toContain(response.status);
    if (response.status === 400) expectInvalidGrant(response);
    if (response.status === 503) expectUnavailable(response);
  }
  return responses.filter(({ status }) => status === 503).length;
}
