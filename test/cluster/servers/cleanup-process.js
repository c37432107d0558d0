// @ts-check
// Cleans up after start-cluster.ts: node cleanup-process.js DIR
// When the starting process ends for any reason, the kernel closes the pipe to the stdin of this process. Then this
// process kills every process that works in DIR, including state transfers, and removes DIR.
import { readdirSync, readFileSync, rmSync } from 'node:fs';

const [, , dir = ''] = process.argv;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end);
process.stdin.on('error', end).on('close', end).resume();

function end() {
  for (let round = 0; round < 3; round++) for (const pid of processesOf(dir)) kill(pid);
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  process.exit();
}

/**
 * The processes whose command names a private folder.
 * @param {string} folder
 */
function processesOf(folder) {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  return pids.map(Number).filter((pid) => commandOf(pid).includes(`${folder}/`));
}

/** @param {number} pid */
function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

/** @param {number} pid */
function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
}
