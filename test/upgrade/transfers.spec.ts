import { describe, expect, it } from 'vitest';
import { times } from '../support/races.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { both, inTurn, pods, startBothReleases } from './both-releases.js';
import type { Release } from './upgrade-test-environment.js';

/** A customer of the time before the migration. */
let earlier: Awaited<ReturnType<typeof newCustomer>>;

startBothReleases(async (first) => {
  earlier = await newCustomer(first);
});

describe('protocol §9.6: transfers while processes of both releases run', () => {
  it.each<[Release, Release]>([
    [1, 1],
    [1, 2],
    [2, 1],
    [2, 2],
  ])('a transfer token of release %i gives one token for the same customer at release %i', async (made, redeemed) => {
    for (const { entity_id, access_token } of [await newCustomer(pods[1]), await newCustomer(pods[2]), earlier]) {
      const code = await transferToken(pods[made], access_token);
      const { status, body } = await redeem(pods[redeemed], code);
      expect([status, body.entity_id]).toEqual([200, entity_id]);
      for (const pod of both()) expect(await infoStatus(pod, body.access_token)).toBe(200);
      for (const pod of both()) expect((await redeem(pod, code)).status).toBe(400);
    }
  });

  it('of parallel exchanges of one code at both releases, one gives a token', async () => {
    const { access_token } = await newCustomer(pods[1]);
    for (let round = 0; round < 20; round++) {
      const code = await transferToken(inTurn(round), access_token);
      const responses = await times(6, (index) => redeem(inTurn(index), code));
      expect(responses.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400, 400, 400]);
    }
  });
});
