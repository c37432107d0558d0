import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { underLoad } from '../faults/faults.js';
import { figure } from '../support/measurements.js';
import { type Cluster, startCluster, untilReadiness } from './cluster.js';
import { untilServing } from './node-outages.js';

/** Milliseconds for which the others go on without a node. */
const WITHOUT = 3_000;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster('history');
});
afterAll(() => cluster?.stop());

describe('60 callers who ask three pods in turn', () => {
  it.each(['killed', 'cut off'] as const)(
    'see every promise kept while a node is %s, and when it is back',
    async (fault) => {
      const [hit, ...others] = cluster.pods;
      const { requests, statuses, longest } = await underLoad(
        () => cluster.pods.map(({ url }) => url),
        async () => {
          if (fault === 'killed') hit.node.kill();
          else await hit.node.cutOff();
          await untilReadiness(hit, 503);
          await Promise.all(others.map(untilServing));
          await sleep(WITHOUT);
          if (fault === 'killed') await hit.node.start();
          else await hit.node.reconnect();
          await untilServing(hit);
        },
      );
      figure(
        `a node ${fault}: ${requests} requests ${JSON.stringify(statuses)}, longest ${Math.round(longest)} ms, 0 violations`,
      );
      expect(statuses.none).toBeUndefined();
    },
  );
});
