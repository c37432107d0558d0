import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RACE_START_MS, REQUESTS_PER_RACE, race } from '../../../../packages/conformance-kit/src/race.js';
import { IS_NIGHTLY } from '../../../nightly.js';
import { TOKEN } from '../../../support/cookie-grant.js';
import { expectInvalidGrant } from '../../../support/expect-error.js';
import { type ServiceProcess, startPod } from '../../../support/processes.js';
import { successfulOf, times, winnerOf } from '../../../support/races.js';
import { startTcpProxy, type TcpProxy } from '../../../support/tcp-proxy.js';
import { httpClientOf } from '../../../support/test-service.js';
import { infoStatus, newCustomer, redeem, redeemBody, transferToken } from '../../../support/transfers.js';
import { useService } from '../../../support/use-service.js';

const CODE_COUNT = IS_NIGHTLY ? 200 : 10;
/** Races that run at the same time. With more, a busy machine cannot respond to all requests within 3 s. */
const PARALLEL_CODE_COUNT = 2;
/** How often the connections to the database are cut. */
const CUT_COUNT = 4;

const service = useService();
/** A transfer token of a new customer, which has at most 60 of them. */
const newCode = async () => transferToken(service, (await newCustomer(service)).access_token);

describe('protocol §3.6, in two processes on one database', () => {
  let pods: ServiceProcess[];
  beforeAll(async () => {
    pods = await Promise.all([startPod(service), startPod(service)]);
  });
  afterAll(async () => {
    expect(await Promise.all(pods?.map((pod) => pod.terminate()))).toEqual([0, 0]);
  });

  it(`each of ${CODE_COUNT} transfer tokens, sent ${REQUESTS_PER_RACE} times at once, gives one token, which stays valid`, () =>
    inTurns(CODE_COUNT, async () => {
      const code = await newCode();
      const { body } = winnerOf(await race(pods, TOKEN, JSON.stringify(redeemBody(code))));
      for (const pod of pods) expect(await infoStatus(httpClientOf(pod.url), body.access_token)).toBe(200);
    }));
});

describe('protocol §3.6, while connections to the database are cut', () => {
  let proxy: TcpProxy;
  let pods: ServiceProcess[];
  beforeAll(async () => {
    proxy = await startTcpProxy(service.database.url);
    const DATABASE_URL = proxy.through(service.database.url);
    pods = await Promise.all([startPod(service, { DATABASE_URL }), startPod(service, { DATABASE_URL })]);
  });
  afterAll(async () => {
    expect(await Promise.all(pods?.map((pod) => pod.terminate()))).toEqual([0, 0]);
    await proxy?.close();
  });

  it('two processes never give two tokens for one code, and a second try succeeds or is rejected', async () => {
    const outcomes = { won: 0, secondTry: 0, lost: 0, unavailable: 0 };
    for (let round = 0; round < CUT_COUNT; round++) {
      const codes = await times(8, newCode);
      const races = codes.map((code) => race(pods, TOKEN, JSON.stringify(redeemBody(code))));
      await sleep(RACE_START_MS + Math.random() * 60);
      await proxy.cut();
      await sleep(Math.random() * 250);
      await proxy.restore();
      for (const [index, race] of races.entries()) {
        const responses = await race;
        for (const response of responses) {
          expect([200, 400, 503]).toContain(response.status);
          if (response.status === 400) expectInvalidGrant(response);
          if (response.status === 503) outcomes.unavailable++;
        }
        const [winner, ...more] = successfulOf(responses);
        expect(more).toEqual([]);
        const token = winner?.body.access_token ?? (await tokenOfSecondTry(codes[index] as string, outcomes));
        if (winner) outcomes.won++;
        if (token) expect(await infoStatus(service, token)).toBe(200);
      }
    }
    expect(outcomes.unavailable, 'the cuts must interrupt requests').toBeGreaterThan(0);
    expect(outcomes.won + outcomes.secondTry + outcomes.lost).toBe(8 * CUT_COUNT);
  });

  async function tokenOfSecondTry(
    code: string,
    outcomes: { secondTry: number; lost: number },
  ): Promise<string | undefined> {
    const response = await redeem(service, code);
    if (response.status === 200) outcomes.secondTry++;
    else outcomes.lost++;
    if (response.status !== 200) expectInvalidGrant(response);
    return response.body.access_token;
  }
});

/** Runs the race for each of the codes, with PARALLEL_CODE_COUNT races at the same time. */
async function inTurns(codeCount: number, raceForCode: () => Promise<void>): Promise<void> {
  for (let done = 0; done < codeCount; done += PARALLEL_CODE_COUNT) await times(PARALLEL_CODE_COUNT, raceForCode);
}
