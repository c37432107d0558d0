import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, inject } from 'vitest';
import type { RegistryDocument } from '../../packages/conformance-kit/src/registry-file.js';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { type ServiceProcess, startPod } from '../support/processes.js';
import { writeRegistry } from '../support/test-registry.js';
import { type HttpClient, httpClientOf, request } from '../support/test-service.js';
import { ADMIN_TOKENS } from '../support/use-service.js';
import type { ClusterNode } from './servers/cluster-node.js';
import type { GaleraNode } from './servers/galera-node.js';
import { openNodes } from './servers/start-cluster.js';

/** A process of the built service on its own node. Tests use only methods that both kinds of nodes have. */
export interface ClusterPod extends HttpClient, ServiceProcess {
  node: GaleraNode;
}

/** Three pods on three nodes of Galera or of a MySQL group, with one set of keys. */
export interface Cluster {
  pods: [ClusterPod, ClusterPod, ClusterPod];
  /** On the first node. */
  database: TestDatabase;
  stop(): Promise<void>;
}

/** Starts all pods at once on an empty database. One of them migrates, and each applies the registry file. */
async function startCluster(name: string, registry?: RegistryDocument): Promise<Cluster> {
  const nodes = openNodes(inject('clusterPlan'));
  const folder = mkdtempSync(join(tmpdir(), 'service-test-'));
  const REGISTRY_FILE = writeRegistry(join(folder, 'registry.yaml'), registry);
  await nodes[0]?.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  const databaseOn = (node: ClusterNode) => ({ url: node.url(name), folder, remove: async () => undefined });
  const start = async (node: ClusterNode): Promise<ClusterPod> => {
    const database = databaseOn(node);
    const pod = await startPod({ database }, { REGISTRY_FILE, ADMIN_TOKENS, MIGRATE_ON_START: 'true' });
    return { ...pod, ...httpClientOf(pod.url), node: node as GaleraNode };
  };
  const pods = (await Promise.all(nodes.map(start))) as Cluster['pods'];
  return {
    pods,
    database: databaseOn(nodes[0] as ClusterNode),
    async stop() {
      await Promise.all(pods.map((pod) => pod.terminate()));
      rmSync(folder, { recursive: true });
    },
  };
}

/** The cluster of a test file. The function makes the registry, if it is not that of the tests. */
export function useCluster(name: string, registryOf?: () => Promise<RegistryDocument> | RegistryDocument): Cluster {
  const cluster = {} as Cluster;
  beforeAll(async () => void Object.assign(cluster, await startCluster(name, await registryOf?.())));
  afterAll(() => cluster.stop?.());
  return cluster;
}

export function othersOf(pods: ClusterPod[], pod: ClusterPod): ClusterPod[] {
  return pods.filter((other) => other !== pod);
}

/** The status of a request that creates a customer: 503 while the pod cannot use its node. */
export async function customerStatus(pod: ClusterPod): Promise<number> {
  return (await pod.post(TOKEN, cookieBody())).status;
}

/** Waits until a pod responds with 503 because it cannot use its node. */
export async function untilUnavailable(pod: ClusterPod): Promise<void> {
  while ((await customerStatus(pod)) !== 503) await sleep(20);
}

/** The number of statements that the pods repeated after a conflict. */
export async function conflictsOf(pods: ClusterPod[]): Promise<number> {
  const texts = await Promise.all(pods.map(async (pod) => (await request(`${pod.managementUrl}/metrics`, {})).text));
  const counts = texts.map((text) => /^cas_database_statements_total\{outcome="repeated"\} (\d+)/m.exec(text)?.[1]);
  return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
}

/** The state of each node from its own view, for error messages. */
export async function statesOfNodes(): Promise<string> {
  const nodes = openNodes(inject('clusterPlan'));
  return (await Promise.all(nodes.map((node) => node.state().catch(String)))).join(', ');
}
