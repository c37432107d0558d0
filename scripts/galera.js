// @ts-check
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { findProgram, installPackages } from './apt.js';
import { GaleraNode } from './galera-node.js';

const PACKAGES = ['mariadb-server', 'galera-4', 'rsync'];
const PROVIDERS = ['/usr/lib/galera', '/usr/lib64/galera-4', '/usr/lib/galera-4'].map((folder) =>
  join(folder, 'libgalera_smm.so'),
);
const KEEPER = join(import.meta.dirname, 'galera-keeper.js');
const NODES = 3;
/** Below those that the kernel gives to whoever asks for none: a killed node finds its own again. */
const FIRST_PORT = 15_000;
const LAST_PORT = 30_000;
const PORTS_PER_NODE = 4;

/**
 * @typedef {object} GaleraCluster
 * @property {string} dir
 * @property {GaleraNode[]} nodes
 * @property {() => Promise<void>} stop kills the nodes and removes their folder
 */

/**
 * The programs of a Galera node; missing ones are installed, if we are root and have apt.
 * @returns {{ mariadbd: string, provider: string } | undefined}
 */
export function findGalera() {
  return locate() ?? (installPackages(PACKAGES) ? locate() : undefined);
}

function locate() {
  const [mariadbd, ...others] = ['mariadbd', 'wsrep_sst_rsync', 'rsync'].map((program) =>
    findProgram({ programs: [program], packages: PACKAGES, folders: ['/usr/sbin'] }),
  );
  const provider = process.env.GALERA_PROVIDER || PROVIDERS.find((path) => existsSync(path));
  return mariadbd && provider && others.every(Boolean) ? { mariadbd, provider } : undefined;
}

/**
 * Starts three nodes as processes of our own, in a folder that is gone soon after this process, however it ends.
 * @returns {Promise<GaleraCluster>}
 */
export async function startGalera() {
  const programs = findGalera();
  if (!programs) throw new Error(`No Galera was found: apt-get install ${PACKAGES.join(' ')}`);
  const dir = mkdtempSync(join(tmpdir(), 'galera-'));
  const keeper = spawn(process.execPath, [KEEPER, dir], {
    detached: true,
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  keeper.unref();
  const stop = async () => {
    const ended = once(keeper, 'exit');
    keeper.ref();
    keeper.stdin.destroy();
    await ended;
  };
  try {
    // rsync gives up being root, and could not write a folder of root's
    const user = process.getuid?.() === 0 ? 'mysql' : userInfo().username;
    const plan = { dir, ...programs, user, password: randomBytes(16).toString('hex'), ports: await freePorts() };
    writeFileSync(join(dir, 'plan.json'), JSON.stringify(plan));
    writeFileSync(join(dir, 'init.sql'), accountSql(plan));
    const { nodes } = openGalera(dir);
    for (const node of nodes) mkdirSync(node.dir);
    execFileSync('chown', ['-R', user, dir]);
    for (const node of nodes) node.install();
    for (const node of nodes) await node.start({ isFirst: node === nodes[0] });
    return { dir, nodes, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * The nodes of a cluster that another process has started.
 * @param {string} dir
 */
export function openGalera(dir) {
  const plan = /** @type {import('./galera-node.js').Plan} */ (
    JSON.parse(readFileSync(join(dir, 'plan.json'), 'utf8'))
  );
  return { dir, nodes: plan.ports.map((_, index) => new GaleraNode(plan, index)) };
}

/** @param {{ password: string }} plan */
function accountSql({ password }) {
  const name = "'app'@'127.0.0.1'";
  return `CREATE USER ${name} IDENTIFIED BY '${password}';\nGRANT ALL ON *.* TO ${name} WITH GRANT OPTION;\n`;
}

/** The first port of each node. */
export async function freePorts() {
  for (;;) {
    const base = randomInt(FIRST_PORT, LAST_PORT);
    const ports = Array.from({ length: NODES * PORTS_PER_NODE }, (_, index) => base + index);
    const free = await Promise.all(ports.map(isFree));
    if (free.every(Boolean)) return ports.filter((_, index) => index % PORTS_PER_NODE === 0);
  }
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer()
      .once('error', () => resolve(false))
      .listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
