import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { underLoad } from '../faults/faults.js';
import type { Call } from '../faults/history.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectUnavailable } from '../support/expect-error.js';
import { figure } from '../support/measurements.js';
import type { TestResponse } from '../support/test-service.js';
import { type ClusterPod, othersOf, statesOfNodes } from './cluster.js';

/** The time for which the other pods may respond with 503. Galera waits 5 s for a lost node before it continues. */
const MAX_OUTAGE_MS = 10_000;
/**
 * A MySQL group removed a killed member after 67 s while two cores did other work, and its members wrote nothing
 * before.
 */
const RECOVERY_TIMEOUT_MS = 180_000;

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

/** The longest time between two responses of a pod with status 200, in milliseconds. */
function longestOutage({ url }: ClusterPod, history: Call[]): number {
  const served = history
    .filter((call) => call.url === url && call.status === 200)
    .map(({ ended }) => ended)
    .sort((one, other) => one - other);
  return Math.round(Math.max(0, ...served.slice(1).map((at, index) => at - (served[index] ?? at))));
}

/** Lets callers act as customers on all pods in turn during an outage of one node, and checks what they got. */
export async function underOutage(pods: ClusterPod[], hit: ClusterPod, what: string, causeOutage: () => Promise<void>) {
  let history: Call[] = [];
  const { requests, statuses, longest } = await underLoad(
    () => pods.map(({ url }) => url),
    (load) => {
      history = load.history;
      return causeOutage();
    },
  );
  const outage = Math.max(...othersOf(pods, hit).map((pod) => longestOutage(pod, history)));
  figure(
    `${what}: the other pods were unavailable for ${outage} ms, its own for ${longestOutage(hit, history)} ms; ` +
      `${requests} requests ${JSON.stringify(statuses)}, longest ${Math.round(longest)} ms`,
  );
  expect(statuses.none).toBeUndefined();
  expect(outage).toBeLessThan(MAX_OUTAGE_MS);
}
