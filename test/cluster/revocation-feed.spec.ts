import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { claimsOf } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { figure } from '../support/measurements.js';
import { FEED_SECRET, FEED_SERVERS, type FeedEntry, readFeed } from '../support/revocation-feed.js';
import { testRegistry } from '../support/test-registry.js';
import { newCustomer } from '../support/transfers.js';
import { type ClusterPod, untilUnavailable, useCluster } from './cluster.js';
import { untilServing } from './node-outages.js';

/** Writers on each pod. */
const WRITER_COUNT = 4;
const REVOCATION_COUNT = 60;
const OUTAGE_MS = 5_000;
/** Far longer than the outage of a node, so that a revocation that never appears fails the test. */
const CATCH_UP_TIMEOUT_MS = 60_000;

const cluster = useCluster('revocation_feed', () => ({ ...testRegistry(), resource_servers: FEED_SERVERS }));

/** Ends tokens on one pod until it is stopped. Records when each response that confirmed the end arrived. */
async function endTokens(pod: ClusterPod, ended: Map<string, number>, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    try {
      const { access_token } = await newCustomer(pod);
      const { status } = await pod.send('DELETE', TOKEN, bearer(access_token));
      if (status === 200) ended.set(claimsOf(access_token).sid as string, performance.now());
    } catch {
      await sleep(50); // the node of the pod is unavailable
    }
  }
}

/** Follows the feed on one pod, as a resource server does. It goes on after errors with its last cursor. */
class Follower {
  readonly seen = new Map<string, number>();
  private cursor: string | undefined;

  constructor(private readonly pod: ClusterPod) {}

  async follow(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const after = this.cursor === undefined ? '' : `after=${this.cursor}&`;
      const page = await readFeed(this.pod, `?${after}wait=2`, basic('customer-server', FEED_SECRET)).catch(() => null);
      if (page?.status !== 200) {
        await sleep(50);
        continue;
      }
      this.cursor = page.body.cursor;
      const now = performance.now();
      for (const { value } of page.body.revocations as FeedEntry[])
        if (!this.seen.has(value)) this.seen.set(value, now);
    }
  }
}

describe('the revocation feed with writers and a consumer on each of three nodes', () => {
  it.each(['no node fails', 'a node is killed'] as const)('misses no revocation while %s', async (outage) => {
    const ended = new Map<string, number>();
    const [writing, following] = [new AbortController(), new AbortController()];
    const followers = cluster.pods.map((pod) => new Follower(pod));
    const follows = followers.map((follower) => follower.follow(following.signal));
    const writes = cluster.pods.flatMap((pod) =>
      Array.from({ length: WRITER_COUNT }, () => endTokens(pod, ended, writing.signal)),
    );
    const untilEnded = async (count: number) => {
      while (ended.size < count) await sleep(20);
    };
    await untilEnded(REVOCATION_COUNT);
    if (outage === 'a node is killed') {
      const [hit] = cluster.pods;
      hit.node.kill();
      await untilUnavailable(hit);
      await sleep(OUTAGE_MS);
      await hit.node.start(); // as the operator does on a MySQL group: a killed member does not join again by itself
      await untilServing(hit);
      await untilEnded(ended.size + REVOCATION_COUNT);
    }
    writing.abort();
    await Promise.all(writes);
    const missing = () => followers.map(({ seen }) => [...ended.keys()].filter((sid) => !seen.has(sid)).length);
    const startedAt = performance.now();
    while (missing().some((count) => count > 0) && performance.now() - startedAt < CATCH_UP_TIMEOUT_MS)
      await sleep(100);
    following.abort();
    await Promise.all(follows);
    const lags = followers.flatMap(({ seen }) => [...ended].map(([sid, at]) => (seen.get(sid) ?? Infinity) - at));
    lags.sort((one, other) => one - other);
    const lag = (part: number) => Math.round(lags[Math.floor(part * (lags.length - 1))] ?? 0);
    figure(
      `${outage}: ${ended.size} revocations, each seen by ${followers.length} consumers after ${lag(0.5)} ms (median), ${lag(0.99)} ms (99%), at most ${lag(1)} ms`,
    );
    expect(missing()).toEqual(followers.map(() => 0));
  });
});
