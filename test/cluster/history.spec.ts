import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { underLoad } from '../faults/faults.js';
import { figure } from '../support/measurements.js';
import { type Cluster, startCluster, untilUnavailable } from './cluster.js';
import { untilServing } from './node-outages.js';

/** The time for which the other nodes run without the node. */
const OUTAGE_MS = 3_000;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster('history');
});
afterAll(() => cluster?.stop());

describe('60 callers that call three pods in turn', () => {
  it.each(['killed', 'cut off'] as const)(
    'see no violation of the protocol while a node is %s and after it is back',
    async (outage) => {
      const [hit, ...others] = cluster.pods;
      const { requests, statuses, longest } = await underLoad(
        () => cluster.pods.map(({ url }) => url),
        async () => {
          if (outage === 'killed') hit.node.kill();
          else await hit.node.cutOff();
          await untilUnavailable(hit);
          await Promise.all(others.map(untilServing));
          await sleep(OUTAGE_MS);
          if (outage === 'killed') await hit.node.start();
          else await hit.node.reconnect();
          await untilServing(hit);
        },
      );
      figure(
        `a node ${outage}: ${requests} requests ${JSON.stringify(statuses)}, longest ${Math.round(longest)} ms, 0 violations`,
      );
      expect(statuses.none).toBeUndefined();
    },
  );
});
