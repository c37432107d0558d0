import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import type { ServiceProcess } from '../support/processes.js';
import { successfulOf, times } from '../support/races.js';
import { httpClientOf, request } from '../support/test-service.js';
import { INFO, redeemBody, TRANSFER, transferBody } from '../support/transfers.js';
import { FaultyHouse } from './faults.js';

/** Debian's libfaketime, with which a process has a clock of its own. */
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';
/** Busy loops that compete with the service and the database for the processor. */
const BUSY_LOOPS = 12;
const ROUNDS = 30;
const SAME = '203.0.113.7';
const OTHER = '203.0.113.8';

let house: FaultyHouse;
let pods: [ServiceProcess, ServiceProcess];
let loops: ChildProcess[];
beforeAll(async () => {
  house = await FaultyHouse.build();
  const ahead = existsSync(FAKETIME) && { LD_PRELOAD: FAKETIME, FAKETIME: '+30s', FAKETIME_DONT_FAKE_MONOTONIC: '1' };
  pods = [await house.start({ TRUST_PROXY: '1' }), await house.start({ TRUST_PROXY: '1', ...ahead })];
  loops = Array.from({ length: BUSY_LOOPS }, () => spawn(process.execPath, ['-e', 'for (;;);']));
  await sleep(5_000);
});
afterAll(async () => {
  for (const loop of loops ?? []) loop.kill('SIGKILL');
  process.stdout.write(`load average at the end: ${loadavg()[0]?.toFixed(1)}\n`);
  await house?.remove();
});

/** A transfer token of a new customer, made by the first process. */
async function transferToken(): Promise<string> {
  const caller = httpClientOf(pods[0].url);
  const { access_token } = (await caller.post(TOKEN, cookieBody())).body;
  return (await caller.post(TRANSFER, transferBody(), bearer(access_token))).body.identity_transfer_token;
}

const exchange = (pod: ServiceProcess, code: string, address: string) =>
  httpClientOf(pod.url).post(TOKEN, redeemBody(code), { 'x-forwarded-for': address });
const isGood = async (token: string) => (await request(pods[0].url + INFO, { headers: bearer(token) })).status === 200;

describe('two processes whose clocks differ by 30 s, on a machine with far too little processor time', () => {
  it('never let a duplicate from the same network end the token of the winner', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const code = await transferToken();
      const answers = await times(12, (n) => exchange(pods[n % 2] as ServiceProcess, code, SAME));
      const winners = successfulOf(answers);
      expect(winners.length).toBeLessThanOrEqual(1);
      for (const { body } of winners) expect(await isGood(body.access_token)).toBe(true);
    }
  });

  it('always let a second use from another network end the token of the winner', async () => {
    let judged = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const code = await transferToken();
      const answers = await times(4, (n) => exchange(pods[n % 2] as ServiceProcess, code, n === 2 ? OTHER : SAME));
      const winners = successfulOf(answers);
      expect(winners.length).toBeLessThanOrEqual(1);
      // a statement that waited for more than a second is given up with 503: that use was not judged
      if (answers.some(({ status }) => status >= 500)) continue;
      judged++;
      for (const { body } of winners) expect(await isGood(body.access_token)).toBe(false);
    }
    expect(judged).toBeGreaterThan(ROUNDS / 2);
  });
});
