// @ts-check
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { freePort } from './free-port.js';
import { cacheFolder, findMariadb, MARIADB } from './programs.js';

const READY_TIMEOUT_MS = 60_000;
const LOG_TAIL_CHARACTERS = 4096;
/**
 * Waits until the process that started it has ended or closes the pipe. Then kills the server and removes its folder.
 */
const CLEANER = 'cat > /dev/null; kill -9 "$(cat "$0/pid")"; rm -rf "$0" || (sleep 1; rm -rf "$0")';

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
  '--innodb-log-file-size=16M', // as in the template, so that the server need not resize it
  '--loose-innodb-flush-method=nosync',
  '--loose-innodb-doublewrite=0',
  '--loose-debug-no-sync', // tables of other engines and their definitions
];

const TEMPLATE_OPTIONS = [
  '--no-defaults',
  '--force', // also if the machine's host name does not resolve
  '--skip-name-resolve',
  '--skip-test-db',
  '--innodb-log-file-size=16M', // small, because each server copies this file
  '--loose-debug-no-sync',
];

/**
 * @typedef {object} Settings
 * @property {boolean} [durable] write to disk at each commit, as in production
 * @property {string} [bufferPool] size of InnoDB's buffer pool
 * @property {string[]} [extra] further options of mariadbd
 * @property {NodeJS.ProcessEnv} [environment] further environment variables of mariadbd
 */

/** @typedef {Awaited<ReturnType<typeof startMariadb>>} MariadbServer */

/**
 * Starts a private MariaDB on a free port of 127.0.0.1, with an account that has all privileges.
 * The server and its folder are removed soon after this process ends, also after a crash.
 * @param {Settings} [settings]
 */
export async function startMariadb({ durable = false, bufferPool = '64M', extra = [], environment = {} } = {}) {
  const mariadbd = findMariadb();
  if (!mariadbd) throw new Error(`No mariadbd was found: ${MARIADB.command}`);
  const account = { host: '127.0.0.1', port: await freePort(), user: 'app', password: randomBytes(16).toString('hex') };
  const dir = mkdtempSync(join(tmpdir(), 'mariadb-'));
  const name = `'${account.user}'@'${account.host}'`;
  writeFileSync(
    join(dir, 'init.sql'),
    `CREATE USER ${name} IDENTIFIED BY '${account.password}';\nGRANT ALL ON *.* TO ${name} WITH GRANT OPTION;\n`,
  );
  cpSync(dataTemplate(mariadbd), join(dir, 'data'), { recursive: true, mode: constants.COPYFILE_FICLONE });
  const options = [
    ...ISOLATED,
    ...(process.getuid?.() === 0 ? ['--user=root'] : []),
    `--port=${account.port}`,
    `--datadir=${join(dir, 'data')}`,
    `--tmpdir=${dir}`,
    `--init-file=${join(dir, 'init.sql')}`,
    `--innodb-buffer-pool-size=${bufferPool}`,
    ...(durable ? [] : NOT_DURABLE),
    ...extra,
  ];
  const log = join(dir, 'mariadbd.log');
  let server = launch();
  const cleaner = spawn('sh', ['-c', CLEANER, dir], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  cleaner.unref();

  function launch() {
    const output = openSync(log, 'a');
    const env = { ...process.env, ...environment };
    // detached, so that Ctrl-C does not hit it
    const launched = spawn(mariadbd ?? '', options, { detached: true, stdio: ['ignore', output, output], env });
    launched.unref();
    writeFileSync(join(dir, 'pid'), String(launched.pid));
    return launched;
  }

  /** Waits until the server responds. */
  async function untilReady() {
    const deadline = Date.now() + READY_TIMEOUT_MS;
    while (!(await isReachable(account))) {
      const hasEnded = server.exitCode !== null || server.signalCode !== null;
      if (!hasEnded && Date.now() < deadline) await sleep(20);
      else
        throw new Error(
          `MariaDB did not start. Its log ends with:\n${readFileSync(log, 'utf8').slice(-LOG_TAIL_CHARACTERS)}`,
        );
    }
  }

  /** Kills the server and removes its folder. */
  async function stop() {
    if (cleaner.exitCode !== null) return;
    cleaner.ref();
    cleaner.stdin.destroy();
    await once(cleaner, 'exit');
  }

  /** The URL of a database, or of the server. */
  const url = (database = '') =>
    `mariadb://${account.user}:${account.password}@${account.host}:${account.port}/${database}`;

  try {
    await untilReady();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    port: account.port,
    dir,
    stop,
    url,
    pid: () => server.pid ?? 0,
    /** Kills the server as a crash does. Its folder stays. */
    crash: () => void server.kill('SIGKILL'),
    /** Stops the server in the regular way. Its folder stays. */
    async shutDown() {
      server.ref();
      const ended = once(server, 'exit');
      server.kill('SIGTERM');
      await ended;
    },
    /** Starts the server again after `crash` or `shutDown`. */
    async restart() {
      server = launch();
      await untilReady();
    },
    /** Creates an empty database, and returns its URL. @param {string} database */
    async createDatabase(database) {
      await withConnection(account, (connection) => connection.query('CREATE DATABASE ??', [database]));
      return url(database);
    },
  };
}

/**
 * An empty data folder for this mariadbd, which each server copies. The first run creates it. @param {string} mariadbd
 */
export function dataTemplate(mariadbd) {
  const origin = JSON.stringify([mariadbd, statSync(mariadbd).mtimeMs, process.getuid?.(), TEMPLATE_OPTIONS]);
  const template = cacheFolder(`mariadb-template-${createHash('sha256').update(origin).digest('hex').slice(0, 16)}`);
  if (existsSync(template)) return template;
  mkdirSync(dirname(template), { recursive: true });
  const draft = mkdtempSync(`${template}.`);
  execFileSync('mariadb-install-db', [...TEMPLATE_OPTIONS, `--datadir=${draft}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (existsSync(template))
    rmSync(draft, { recursive: true }); // another run has created it meanwhile
  else renameSync(draft, template);
  return template;
}

/** @param {mysql.ConnectionOptions} account */
function isReachable(account) {
  return withConnection(account, (connection) => connection.ping()).then(
    () => true,
    () => false,
  );
}

/** @param {mysql.ConnectionOptions} account @param {(connection: mysql.Connection) => Promise<unknown>} use */
async function withConnection(account, use) {
  const connection = await mysql.createConnection({ ...account, connectTimeout: 2_000 });
  try {
    await use(connection);
  } finally {
    connection.destroy();
  }
}
