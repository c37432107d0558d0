import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { RACE_START_MS, race } from '../../packages/conformance-kit/src/race.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectInvalidGrant, expectUnavailable } from '../support/expect-error.js';
import { figure } from '../support/measurements.js';
import { successfulOf, times } from '../support/races.js';
import type { TestResponse } from '../support/test-service.js';
import { infoStatus, newCustomer, redeem, redeemBody, transferToken } from '../support/transfers.js';
import { type ClusterPod, othersOf, useCluster } from './cluster.js';
import { untilServing } from './node-outages.js';

const CODE_COUNT = 60;
const REQUESTS_PER_RACE = 6;
/** The races that start at an interval around the cut: some end before it, and some overlap it. The others start after it. */
const EARLY_RACE_COUNT = 40;
const RACE_INTERVAL_MS = 10;

const cluster = useCluster('codes_in_outages');

describe('protocol §3.6, while a node of three is cut off', () => {
  it.each([0, 1, 2])(
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
