import { execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { findGalera } from '../../../scripts/programs.js';
import { freePortRanges } from './free-ports.js';
import { GaleraNode } from './galera-node.js';
import type { GaleraPlan } from './galera-options.js';
import { GroupReplicationNode, type GroupReplicationPlan } from './group-replication-node.js';
import { findMysql } from './mysql-server.js';

const CLEANUP_PROCESS = join(import.meta.dirname, 'cleanup-process.js');
const NODE_COUNT = 3;
const PORTS_PER_NODE = 4;

export type Plan = GaleraPlan | GroupReplicationPlan;

/** A running cluster. `stop` kills the servers and removes their folder. */
export interface StartedCluster {
  plan: Plan;
  stop(): Promise<void>;
}

/**
 * Starts three servers as child processes in a private folder. When this process ends for any reason, the cleanup
 * process kills the servers and removes the folder.
 */
export async function startServers(kind: Plan['kind']): Promise<StartedCluster> {
  const folder = mkdtempSync(join(tmpdir(), `${kind}-`));
  const stop = startCleanup(folder);
  try {
    const plan = await planOf(kind, folder);
    const nodes = openNodes(plan);
    for (const node of nodes) {
      mkdirSync(node.folder);
      node.install();
    }
    const [first, ...others] = nodes;
    await first?.start({ isFirst: true });
    await Promise.all(others.map((node) => node.start()));
    return { plan, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The nodes of a cluster that another process may have started. */
export function openNodes(plan: Plan): (GaleraNode | GroupReplicationNode)[] {
  return plan.ports.map((_, index) =>
    plan.kind === 'galera' ? new GaleraNode(plan, index) : new GroupReplicationNode(plan, index),
  );
}

async function planOf(kind: Plan['kind'], folder: string): Promise<Plan> {
  const ports = await freePortRanges(NODE_COUNT, PORTS_PER_NODE);
  const common = { folder, password: randomBytes(16).toString('hex'), ports };
  if (kind === 'group-replication') {
    const command = findMysql();
    if (!command) throw new Error('no MySQL server was found');
    return { ...common, kind, command, groupName: randomUUID() };
  }
  const programs = findGalera();
  if (!programs) throw new Error('no Galera was found');
  // rsync drops the privileges of root, and then cannot write to a folder of root.
  const user = process.getuid?.() === 0 ? 'mysql' : userInfo().username;
  execFileSync('chown', [user, folder]);
  return { ...common, kind, command: [programs.mariadbd, '--no-defaults'], provider: programs.provider, user };
}

/** Starts the process that kills the servers when this process ends. The returned function ends the servers earlier. */
function startCleanup(folder: string): () => Promise<void> {
  const cleanup = spawn(process.execPath, [CLEANUP_PROCESS, folder], {
    detached: true,
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  cleanup.unref();
  return async () => {
    const ended = once(cleanup, 'exit');
    cleanup.ref();
    cleanup.stdin.destroy();
    await ended;
  };
}
