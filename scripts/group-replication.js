// @ts-check
import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync } from 'node:fs';
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
    const members = plan.ports.map((_, index) => new GroupMember(plan, index));
    for (const member of members) {
      mkdirSync(member.dir);
      member.install();
    }
    for (const member of members) await member.start({ isFirst: member === members[0] });
    return { dir, members, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
