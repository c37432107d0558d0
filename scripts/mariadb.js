// @ts-check
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { freePort } from './free-port.js';
import { findMariadb, MARIADB } from './test-programs.js';

const SUPERVISOR = join(import.meta.dirname, 'mariadb-supervisor.js');
const READY_TIMEOUT_MS = 60_000;
const LOG_TAIL_BYTES = 4096;

const ISOLATED = [
  '--no-defaults',
  '--bind-address=127.0.0.1',
  '--socket=', // none, because its path must not be longer than 104 bytes
  '--skip-name-resolve',
  '--character-set-server=utf8mb4',
  '--collation-server=utf8mb4_general_ci',
  '--default-time-zone=+00:00',
  '--max-connections=1000', // for the pools of many test workers
];

const NOT_DURABLE = [
  '--innodb-flush-log-at-trx-commit=0',
  '--innodb-log-file-size=16M', // as in the supervisor's template, so that the server need not resize it
  '--loose-innodb-flush-method=nosync',
  '--loose-innodb-doublewrite=0',
  '--loose-debug-no-sync', // tables of other engines and their definitions
];

/**
 * @typedef {object} Settings
 * @property {boolean} [durable] write to disk at each commit, as in production
 * @property {string} [bufferPool] size of InnoDB's buffer pool
 * @property {string[]} [extra] further options of mariadbd
 * @property {NodeJS.ProcessEnv} [environment] further environment variables of mariadbd
 */

/** @typedef {{ host: string, port: number, user: string, password: string }} Account */

/**
 * @typedef {object} MariadbServer
 * @property {number} port on 127.0.0.1
 * @property {string} dir the server's folder
 * @property {() => number} pid of mariadbd itself
 * @property {() => void} crash kills the server and leaves its folder
 * @property {() => Promise<void>} shutDown stops the server in the regular way and leaves its folder
 * @property {() => Promise<void>} restart starts it again after `crash` or `shutDown`; resolves when it serves
 * @property {(database?: string) => string} url of a database, or of the server
 * @property {(name: string) => Promise<string>} createDatabase creates an empty database and resolves to its URL
 * @property {() => Promise<void>} stop kills the server and removes its folder
 */

/**
 * Starts a private MariaDB on a free port of 127.0.0.1, with an account that has all privileges.
 * The server and its folder are removed soon after this process ends, also after a crash.
 * @param {Settings} [settings]
 * @returns {Promise<MariadbServer>}
 */
export async function startMariadb(settings = {}) {
  const mariadbd = findMariadb();
  if (!mariadbd) throw new Error(`No mariadbd was found: ${MARIADB.command}`);
  // Tries twice, because the port may have been taken meanwhile, or the template may be damaged.
  return launch(mariadbd, settings).catch(() => launch(mariadbd, settings));
}

/**
 * @param {string} mariadbd
 * @param {Settings} settings
 * @returns {Promise<MariadbServer>}
 */
async function launch(mariadbd, settings) {
  const account = { host: '127.0.0.1', port: await freePort(), user: 'app', password: randomBytes(16).toString('hex') };
  const dir = mkdtempSync(join(tmpdir(), 'mariadb-'));
  writeFileSync(join(dir, 'init.sql'), accountSql(account));
  const log = openSync(join(dir, 'mariadbd.log'), 'a+');
  const supervisor = spawn(
    process.execPath,
    [SUPERVISOR, dir, mariadbd, ...serverOptions(dir, account.port, settings)],
    {
      detached: true, // so that Ctrl-C does not hit it
      stdio: ['pipe', log, log],
      env: { ...process.env, NODE_OPTIONS: '', ...settings.environment },
    },
  );
  supervisor.unref();
  try {
    await untilReady(supervisor, account);
    return describe(supervisor, dir, account);
  } catch (cause) {
    await end(supervisor);
    throw new Error(`MariaDB did not start. Its log ends with:\n${tail(log)}`, { cause });
  } finally {
    closeSync(log);
  }
}

/** @param {Account} account */
function accountSql({ user, host, password }) {
  const name = `'${user}'@'${host}'`;
  return `CREATE USER ${name} IDENTIFIED BY '${password}';\nGRANT ALL ON *.* TO ${name} WITH GRANT OPTION;\n`;
}

/**
 * @param {string} dir
 * @param {number} port
 * @param {Settings} settings
 */
function serverOptions(dir, port, { durable = false, bufferPool = '64M', extra = [] }) {
  return [
    ...ISOLATED,
    ...(process.getuid?.() === 0 ? ['--user=root'] : []),
    `--port=${port}`,
    `--datadir=${join(dir, 'data')}`,
    `--tmpdir=${dir}`,
    `--pid-file=${join(dir, 'mariadbd.pid')}`,
    `--init-file=${join(dir, 'init.sql')}`,
    `--innodb-buffer-pool-size=${bufferPool}`,
    ...(durable ? [] : NOT_DURABLE),
    ...extra,
  ];
}

/**
 * @param {import('node:child_process').ChildProcess} supervisor
 * @param {Account} account
 */
async function untilReady(supervisor, account) {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!hasEnded(supervisor)) {
    if (await isReachable(account)) return;
    if (Date.now() > deadline) throw new Error(`No response within ${READY_TIMEOUT_MS} ms`);
    await sleep(20);
  }
  throw new Error('The server ended during its start');
}

/** @param {Account} account */
function isReachable(account) {
  return withConnection(account, (connection) => connection.ping()).then(
    () => true,
    () => false,
  );
}

/**
 * @param {Account} account
 * @param {(connection: mysql.Connection) => Promise<unknown>} use
 */
async function withConnection(account, use) {
  const connection = await mysql.createConnection({ ...account, connectTimeout: 2_000 });
  try {
    await use(connection);
  } finally {
    connection.destroy();
  }
}

/**
 * @param {import('node:child_process').ChildProcess} supervisor
 * @param {string} dir
 * @param {Account} account
 * @returns {MariadbServer}
 */
function describe(supervisor, dir, account) {
  const { host, port, user, password } = account;
  const url = (database = '') => `mariadb://${user}:${password}@${host}:${port}/${database}`;
  const pid = () => Number(readFileSync(join(dir, 'mariadbd.pid'), 'utf8'));
  return {
    port,
    dir,
    pid,
    crash: () => void supervisor.kill('SIGUSR2'),
    async shutDown() {
      const ending = pid();
      supervisor.stdin?.write('shut down\n');
      while (isRunning(ending)) await sleep(20);
    },
    async restart() {
      supervisor.kill('SIGUSR2');
      await untilReady(supervisor, account);
    },
    url,
    async createDatabase(name) {
      await withConnection(account, (connection) => connection.query('CREATE DATABASE ??', [name]));
      return url(name);
    },
    stop: () => end(supervisor),
  };
}

/** @param {number} pid */
function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** @param {import('node:child_process').ChildProcess} supervisor */
async function end(supervisor) {
  if (hasEnded(supervisor)) return;
  const ended = once(supervisor, 'exit');
  supervisor.ref();
  supervisor.stdin?.destroy();
  await ended;
}

/** @param {import('node:child_process').ChildProcess} supervisor */
function hasEnded({ exitCode, signalCode }) {
  return exitCode !== null || signalCode !== null;
}

/**
 * The end of a file that may have been removed meanwhile.
 * @param {number} file
 */
function tail(file) {
  const { size } = fstatSync(file);
  const bytes = Buffer.alloc(Math.min(size, LOG_TAIL_BYTES));
  readSync(file, bytes, 0, bytes.length, size - bytes.length);
  return bytes.toString().trimEnd();
}
