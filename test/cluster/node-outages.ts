import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { figure } from '../support/measurements.js';
import { times } from '../support/races.js';
import type { TestResponse } from '../support/test-service.js';
import { type ClusterPod, othersOf, statesOfNodes } from './cluster.js';
import { CustomerLoad } from './customer-load.js';

/** The time for which the other pods may respond with 503. Galera waits 5 s for a lost node before it continues. */
const MAX_OUTAGE_MS = 10_000;
/** The time within which every caller has a response (protocol §2.12). */
const MAX_WAIT_MS = 4_000;
/** A MySQL group removed a killed member after 67 s while two cores did other work, and its members wrote nothing before. */
const RECOVERY_TIMEOUT_MS = 180_000;
const CONCURRENT_CUSTOMER_COUNT = 20;
/** The time of normal operation before and after the outage. */
const NORMAL_OPERATION_MS = 1_000;

/** Checks the response of a pod whose database is unavailable. */
export function expectUnavailable(response: TestResponse): void {
  expectError(response, { status: 503, error: 'temporarily_unavailable', hint: undefined });
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
}

/** Repeats a request until the database is available. Fails if that takes longer than any outage. */
export async function retryUntilAvailable(send: () => Promise<TestResponse>): Promise<TestResponse> {
  const deadline = performance.now() + RECOVERY_TIMEOUT_MS;
  for (;;) {
    const response = await send();
    if (response.status !== 503) return response;
    expectUnavailable(response);
    if (performance.now() > deadline)
      throw new Error(`503 for ${RECOVERY_TIMEOUT_MS} ms; the nodes: ${await statesOfNodes()}`);
    await sleep(20);
  }
}

/** Waits until a pod creates customers. Resolves to the milliseconds of the wait. */
export async function untilServing(pod: ClusterPod): Promise<number> {
  const startedAt = performance.now();
  expect((await retryUntilAvailable(() => pod.post(TOKEN, cookieBody()))).status).toBe(200);
  return performance.now() - startedAt;
}

/** Runs customers on every pod during an outage of one node. Then checks that no customer was lost or changed. */
export async function underLoad(pods: ClusterPod[], hit: ClusterPod, what: string, causeOutage: () => Promise<void>) {
  const load = new CustomerLoad(pods);
  await sleep(NORMAL_OPERATION_MS);
  try {
    await causeOutage();
    await sleep(NORMAL_OPERATION_MS);
  } finally {
    await load.stop();
  }
  for (const response of load.errorResponses) expectUnavailable(response);
  expect(load.misidentified).toEqual([]);
  expect(load.customers.length).toBeGreaterThan(100);
  for (let done = 0; done < load.customers.length; done += CONCURRENT_CUSTOMER_COUNT) {
    await times(CONCURRENT_CUSTOMER_COUNT, async (index) => {
      const { cookie, entityId } = load.customers[done + index] ?? {};
      if (cookie === undefined) return;
      for (const pod of pods) {
        const { status, body } = await pod.post(TOKEN, cookieBody(), { cookie });
        expect({ status, id: body.entity_id }).toEqual({ status: 200, id: entityId });
      }
    });
  }
  const others = othersOf(pods, hit);
  const outage = Math.max(...others.map((pod) => load.longestOutage(pod)));
  const wait = Math.max(...pods.map((pod) => load.longestWait(pod)));
  figure(
    `${what}: the other pods were unavailable for ${outage} ms, its own for ${load.longestOutage(hit)} ms, longest wait ${wait} ms`,
  );
  figure(
    `  ${load.customers.length} customers created meanwhile, none lost; ${load.errorResponses.length} calls got 503`,
  );
  expect(outage).toBeLessThan(MAX_OUTAGE_MS);
  expect(wait).toBeLessThan(MAX_WAIT_MS);
}
