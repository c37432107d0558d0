import { inject } from 'vitest';
import { describeAgentRaces } from '../races/agent-races.js';
import { describeBoundRaces, describeBrowserRaces } from '../races/browser-races.js';
import { describeEndingRaces } from '../races/ending-races.js';
import { useRaceWorld } from '../races/world.js';
import type { ClusterNode } from './servers/cluster-node.js';
import { openNodes } from './servers/start-cluster.js';

const DATABASE = 'races';

/** Two processes on two nodes of Galera, or on one server of a MySQL group. */
const world = useRaceWorld(async () => {
  const [one, two] = openNodes(inject('clusterPlan')) as ClusterNode[] as [ClusterNode, ClusterNode];
  await one.query(`CREATE DATABASE ${DATABASE} CHARACTER SET utf8mb4`);
  return [one.url(DATABASE), (one.plan.kind === 'galera' ? two : one).url(DATABASE)];
});
describeEndingRaces(world);
describeAgentRaces(world);
describeBrowserRaces(world);
describeBoundRaces(world);
