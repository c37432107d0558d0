// @ts-check
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';

const READY_MS = 120_000;
const LOG_TAIL = 3_000;

const OPTIONS = [
  '--bind-address=127.0.0.1',
  '--skip-name-resolve',
  '--character-set-server=utf8mb4',
  '--default-time-zone=+00:00',
  '--performance-schema=OFF',
  '--max-connections=500',
  '--innodb-flush-log-at-trx-commit=0', // not durable: the other nodes have it
  '--innodb-doublewrite=0',
  '--innodb-flush-method=nosync',
];

const STORAGE = [
  '--innodb-buffer-pool-size=64M',
  '--innodb-log-file-size=16M',
  '--binlog-format=ROW',
  '--innodb-autoinc-lock-mode=2',
  '--wsrep-on=ON',
];

/**
 * @typedef {object} Plan what a cluster's processes need to know, kept in its folder
 * @property {string} dir
 * @property {string} mariadbd
 * @property {string} provider path of the Galera library
 * @property {string} user whom the servers run as
 * @property {string} password of the account `app`
 * @property {number[]} ports of the nodes; the three after each are its own too
 */

/** One node of a private cluster: a mariadbd that can be killed, frozen and cut off. */
export class GaleraNode {
  /**
   * @param {Plan} plan
   * @param {number} index
   */
  constructor(plan, index) {
    this.plan = plan;
    this.index = index;
    this.port = /** @type {number} */ (plan.ports[index]);
    this.dir = join(plan.dir, `node${index + 1}`);
  }

  /** @param {string} [database] */
  url(database = '') {
    return `mariadb://app:${this.plan.password}@127.0.0.1:${this.port}/${database}`;
  }

  /**
   * Starts the node: the first of a cluster, or a further one, which copies what it lacks from the others. One that was
   * killed takes up where it was.
   * @param {{ isFirst?: boolean }} [options]
   */
  async start({ isFirst = false } = {}) {
    const { plan, dir, port } = this;
    const others = plan.ports.filter((other) => other !== port).map((other) => `127.0.0.1:${other + 1}`);
    const log = openSync(join(dir, 'mariadbd.log'), 'a');
    const server = spawn(
      plan.mariadbd,
      [
        ...this.#storage(),
        ...OPTIONS,
        `--port=${port}`,
        `--socket=${join(dir, 'sock')}`,
        `--pid-file=${join(dir, 'mariadbd.pid')}`,
        '--wsrep-cluster-name=private',
        `--wsrep-cluster-address=gcomm://${isFirst ? '' : others.join(',')}`,
        `--wsrep-node-name=node${this.index + 1}`,
        '--wsrep-node-address=127.0.0.1',
        `--wsrep-node-incoming-address=127.0.0.1:${port}`,
        '--wsrep-sst-method=rsync',
        `--wsrep-sst-receive-address=127.0.0.1:${port + 3}`,
        `--wsrep-provider-options=${[
          `gmcast.listen_addr=tcp://127.0.0.1:${port + 1}`,
          'base_host=127.0.0.1',
          `base_port=${port + 1}`,
          `ist.recv_addr=127.0.0.1:${port + 2}`,
          'pc.recovery=false',
          'gcache.size=64M',
        ].join(';')}`,
        ...(isFirst ? [`--init-file=${join(plan.dir, 'init.sql')}`] : this.#position()),
      ],
      { detached: true, stdio: ['ignore', log, log] }, // detached, so that Ctrl-C does not hit it
    );
    server.unref();
    writeFileSync(join(dir, 'pid'), String(server.pid));
    await this.untilServing(server);
  }

  /** Makes its data folder, with which it has never been a node of anything. */
  install() {
    execFileSync(
      'mariadb-install-db',
      ['--no-defaults', '--force', '--skip-name-resolve', '--skip-test-db', `--user=${this.plan.user}`].concat(
        `--datadir=${join(this.dir, 'data')}`,
        '--innodb-log-file-size=16M',
      ),
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
  }

  /** Ends it as a power cut would. */
  kill() {
    process.kill(this.#pid, 'SIGKILL');
  }

  freeze() {
    process.kill(this.#pid, 'SIGSTOP');
  }

  thaw() {
    process.kill(this.#pid, 'SIGCONT');
  }

  /** Takes it from the others, and them from it; who asks it still reaches it. */
  async cutOff() {
    await this.query("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'");
  }

  async reconnect() {
    await this.query("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'");
  }

  /**
   * A counter or state of the node, as `SHOW STATUS` names it.
   * @param {string} name
   */
  async status(name) {
    const [row] = /** @type {{ Value: string }[]} */ (await this.query(`SHOW GLOBAL STATUS LIKE '${name}'`));
    return row?.Value ?? '';
  }

  /** @param {string} sql */
  async query(sql) {
    const account = { host: '127.0.0.1', port: this.port, user: 'app', password: this.plan.password };
    const connection = await mysql.createConnection({ ...account, connectTimeout: 2_000 });
    try {
      return (await connection.query(sql))[0];
    } finally {
      connection.destroy();
    }
  }

  /**
   * Waits until the node is one of a cluster with a quorum, and has all that the others have.
   * @param {import('node:child_process').ChildProcess} [server]
   */
  async untilServing(server) {
    const ended = server && once(server, 'exit').then(() => true);
    const deadline = Date.now() + READY_MS;
    while ((await this.status('wsrep_local_state_comment').catch(() => '')) !== 'Synced') {
      const over = Date.now() > deadline || (await Promise.race([ended, sleep(50)]));
      if (over) throw new Error(`node ${this.index + 1} does not serve:\n${this.#logTail()}`);
    }
  }

  get #pid() {
    return Number(readFileSync(join(this.dir, 'pid'), 'utf8'));
  }

  #storage() {
    const { mariadbd, provider, user } = this.plan;
    const as = process.getuid?.() === 0 ? [`--user=${user}`] : [];
    return ['--no-defaults', ...as, `--datadir=${join(this.dir, 'data')}`, ...STORAGE, `--wsrep-provider=${provider}`];
  }

  /** The last change it has, so that it gets those after it and not all. */
  #position() {
    if (!existsSync(join(this.dir, 'data/grastate.dat'))) return [];
    const options = ['--wsrep-cluster-address=gcomm://', '--skip-networking', `--socket=${join(this.dir, 'sock')}`];
    const { stderr } = spawnSync(this.plan.mariadbd, [...this.#storage(), ...options, '--wsrep-recover'], {
      encoding: 'utf8',
    });
    const [, position] = /Recovered position:\s*(\S+)/.exec(stderr) ?? [];
    return position ? [`--wsrep-start-position=${position}`] : [];
  }

  #logTail() {
    return readFileSync(join(this.dir, 'mariadbd.log'), 'utf8').slice(-LOG_TAIL);
  }
}
