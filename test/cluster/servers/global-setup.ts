import type { TestProject } from 'vitest/node';
import { type Plan, startServers } from './start-cluster.js';

declare module 'vitest' {
  interface ProvidedContext {
    clusterPlan: Plan;
  }
}

/** Starts the cluster that the project of tests is named after, before the first test. */
export default async function startClusterOf(project: TestProject): Promise<() => Promise<void>> {
  const { plan, stop } = await startServers(project.name as Plan['kind']);
  project.provide('clusterPlan', plan);
  return stop;
}
