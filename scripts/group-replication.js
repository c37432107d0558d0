// @ts-check
import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from './galera.js';
import { GroupMember } from './group-member.js';
import { findMysql } from './mysql-program.js';

const KEEPER = join(import.meta.dirname, 'galera-keeper.js');

/**
 * Starts a group of three MySQL servers that may all be written to (Group Replication, multi-primary), as processes of our
 * own, in a folder that is gone soon after this process, however it ends. `undefined` where no MySQL can be had.
 */
export async function startGroup() {
  const command = findMysql();
  if (!command) return undefined;
  const dir = mkdtempSync(join(tmpdir(), 'group-'));
  const keeper = spawn(process.execPath, [KEEPER, dir], { detached: true, stdio: ['pipe', 'inherit', 'inherit'] });
  keeper.unref();
  const stop = async () => {
    const ended = once(keeper, 'exit');
    keeper.ref();
    keeper.stdin.destroy();
    await ended;
  };
  try {
    const plan = {
      dir,
      command,
      name: randomUUID(),
      password: randomBytes(16).toString('hex'),
      ports: await freePorts(),
    };
    writeFileSync(join(dir, 'plan.json'), JSON.stringify(plan));
    const { nodes } = openGroup(dir);
    for (const node of nodes) {
      mkdirSync(node.dir);
      node.install();
    }
    for (const node of nodes) await node.start({ isFirst: node === nodes[0] });
    return { dir, nodes, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * The members of a group that another process has started.
 * @param {string} dir
 */
export function openGroup(dir) {
  const plan = /** @type {import('./group-member.js').GroupPlan} */ (
    JSON.parse(readFileSync(join(dir, 'plan.json'), 'utf8'))
  );
  return { dir, nodes: plan.ports.map((_, index) => new GroupMember(plan, index)) };
}
