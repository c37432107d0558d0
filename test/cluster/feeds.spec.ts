import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { claimsOf } from '../support/agent-tokens.js';
import { basic, bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { AS_OPERATOR, type ReadEvent, readEvents } from '../support/customer-events.js';
import { manage } from '../support/management-api.js';
import { figure } from '../support/measurements.js';
import { FEED_SECRET, FEED_SERVERS, type FeedEntry, readFeed } from '../support/revocation-feed.js';
import { testRegistry } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { newCustomer } from '../support/transfers.js';
import { type ClusterPod, untilUnavailable, useCluster } from './cluster.js';
import { untilServing } from './node-outages.js';

/** Writers on each pod. */
const WRITER_COUNT = 4;
const CHANGE_COUNT = 120;
const OUTAGE_MS = 5_000;
/** Far longer than the outage of a node, so that a change that never appears fails the test. */
const CATCH_UP_TIMEOUT_MS = 60_000;

const cluster = useCluster('feeds', () => ({ ...testRegistry(), resource_servers: FEED_SERVERS }));

/**
 * Ends tokens and erases their customers on one pod until it is stopped. Records when each response that confirmed a
 * change arrived, by the `sid` or the id of the customer.
 */
async function writeChanges(pod: ClusterPod, changes: Map<string, number>, stopping: AbortSignal): Promise<void> {
  const record = ({ status }: TestResponse, key: string) => status === 200 && changes.set(key, performance.now());
  while (!stopping.aborted) {
    try {
      const { access_token, entity_id } = await newCustomer(pod);
      record(await pod.send('DELETE', TOKEN, bearer(access_token)), claimsOf(access_token).sid as string);
      record(await manage(pod, 'DELETE', `/admin/customers/${entity_id}`, AS_OPERATOR), entity_id);
    } catch {
      await sleep(50); // the node of the pod is unavailable
    }
  }
}

/** What a feed is read with, and what its pages name. */
interface Feed {
  read(pod: ClusterPod, query: string): Promise<TestResponse>;
  keysOf(body: TestResponse['body']): string[];
}

const FEEDS: Feed[] = [
  {
    read: (pod, query) => readFeed(pod, query, basic('customer-server', FEED_SECRET)),
    keysOf: ({ revocations }) => revocations.map(({ value }: FeedEntry) => value),
  },
  {
    read: (pod, query) => readEvents(pod, query),
    keysOf: ({ events }) => events.map(({ entity_id }: ReadEvent) => entity_id),
  },
];

/** Follows both feeds on one pod, as a consumer does. It goes on after errors with its last cursor. */
class Follower {
  readonly seen = new Map<string, number>();

  constructor(private readonly pod: ClusterPod) {}

  async follow(stopping: AbortSignal): Promise<void> {
    await Promise.all(FEEDS.map((feed) => this.followOne(feed, stopping)));
  }

  private async followOne({ read, keysOf }: Feed, stopping: AbortSignal): Promise<void> {
    for (let after = ''; !stopping.aborted; ) {
      const page = await read(this.pod, `?${after}wait=2`).catch(() => null);
      if (page?.status !== 200) {
        await sleep(50);
        continue;
      }
      after = `after=${page.body.cursor}&`;
      const now = performance.now();
      for (const key of keysOf(page.body)) if (!this.seen.has(key)) this.seen.set(key, now);
    }
  }
}

describe('the revocation feed and the events, with writers and a consumer on each of three nodes,', () => {
  it.each(['no node fails', 'a node is killed'] as const)(
    'miss no revocation and no erasure while %s',
    async (outage) => {
      const changes = new Map<string, number>();
      const [writing, following] = [new AbortController(), new AbortController()];
      const followers = cluster.pods.map((pod) => new Follower(pod));
      const follows = followers.map((follower) => follower.follow(following.signal));
      const writes = cluster.pods.flatMap((pod) =>
        Array.from({ length: WRITER_COUNT }, () => writeChanges(pod, changes, writing.signal)),
      );
      const untilChanged = async (count: number) => {
        while (changes.size < count) await sleep(20);
      };
      await untilChanged(CHANGE_COUNT);
      if (outage === 'a node is killed') {
        const [hit] = cluster.pods;
        hit.node.kill();
        await untilUnavailable(hit);
        await sleep(OUTAGE_MS);
        await hit.node.start(); // as the operator does on a MySQL group: a killed member does not join again by itself
        await untilServing(hit);
        await untilChanged(changes.size + CHANGE_COUNT);
      }
      writing.abort();
      await Promise.all(writes);
      const missing = () => followers.map(({ seen }) => [...changes.keys()].filter((key) => !seen.has(key)).length);
      const startedAt = performance.now();
      while (missing().some((count) => count > 0) && performance.now() - startedAt < CATCH_UP_TIMEOUT_MS)
        await sleep(100);
      following.abort();
      await Promise.all(follows);
      const lags = followers.flatMap(({ seen }) => [...changes].map(([key, at]) => (seen.get(key) ?? Infinity) - at));
      lags.sort((one, other) => one - other);
      const lag = (part: number) => Math.round(lags[Math.floor(part * (lags.length - 1))] ?? 0);
      figure(
        `${outage}: ${changes.size} revocations and erasures, each seen by ${followers.length} consumers after ${lag(0.5)} ms (median), ${lag(0.99)} ms (99%), at most ${lag(1)} ms`,
      );
      expect(missing()).toEqual(followers.map(() => 0));
    },
  );
});
