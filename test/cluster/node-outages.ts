import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { figure } from '../support/measurements.js';
import { times } from '../support/races.js';
import type { TestResponse } from '../support/test-service.js';
import { type ClusterPod, othersOf, statesOfNodes } from './cluster.js';
import { CustomerLoad } from './customer-load.js';

/** The time for which nodes that lost one of them may refuse: Galera waits 5 s for it before they go on without. */
const MAX_OUTAGE_MS = 10_000;
/** Within which every caller has an answer (protocol §2.12). */
const MAX_WAIT_MS = 4_000;
const GIVE_UP_AFTER_MS = 60_000;
const AT_ONCE = 20;
/** The time of ordinary service before and after. */
const ORDINARY_SERVICE_MS = 1_000;

/** The answer of a pod whose database is away. */
export function expectAway(answer: TestResponse): void {
  expectError(answer, { status: 503, error: 'temporarily_unavailable', hint: undefined });
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
}

/** Sends it again until the database is there; gives up when that takes longer than any outage. */
export async function untilAnswered(send: () => Promise<TestResponse>): Promise<TestResponse> {
  const deadline = performance.now() + GIVE_UP_AFTER_MS;
  for (;;) {
    const answer = await send();
    if (answer.status !== 503) return answer;
    expectAway(answer);
    if (performance.now() > deadline)
      throw new Error(`503 for ${GIVE_UP_AFTER_MS} ms; the nodes: ${await statesOfNodes()}`);
    await sleep(20);
  }
}

/** Waits until a pod makes customers; resolves to the milliseconds that took. */
export async function untilServing(pod: ClusterPod): Promise<number> {
  const begun = performance.now();
  expect((await untilAnswered(() => pod.post(TOKEN, cookieBody()))).status).toBe(200);
  return performance.now() - begun;
}

/** Customers on every pod, while something happens to the node of one of them; then insists that nobody was lied to. */
export async function underLoad(pods: ClusterPod[], hit: ClusterPod, what: string, happens: () => Promise<void>) {
  const load = new CustomerLoad(pods);
  await sleep(ORDINARY_SERVICE_MS);
  try {
    await happens();
    await sleep(ORDINARY_SERVICE_MS);
  } finally {
    await load.stop();
  }
  for (const answer of load.refusals) expectAway(answer);
  expect(load.mistaken).toEqual([]);
  expect(load.made.length).toBeGreaterThan(100);
  for (let done = 0; done < load.made.length; done += AT_ONCE) {
    await times(AT_ONCE, async (index) => {
      const { cookie, entityId } = load.made[done + index] ?? {};
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
    `${what}: the others refused for ${outage} ms, its own for ${load.longestOutage(hit)} ms, longest wait ${wait} ms`,
  );
  figure(`  ${load.made.length} customers made meanwhile, all still there; ${load.refusals.length} calls answered 503`);
  expect(outage).toBeLessThan(MAX_OUTAGE_MS);
  expect(wait).toBeLessThan(MAX_WAIT_MS);
}
