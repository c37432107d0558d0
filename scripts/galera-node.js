// @ts-check
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { LOG_SIZE, serverOptions, storageOptions } from './galera-options.js';

const READY_MS = 120_000;
const LOG_TAIL = 3_000;

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
    const { plan, dir, index } = this;
    const role = isFirst ? [`--init-file=${join(plan.dir, 'init.sql')}`] : this.#position();
    const log = openSync(join(dir, 'mariadbd.log'), 'a');
    const server = spawn(plan.mariadbd, [...serverOptions(plan, dir, index, isFirst), ...role], {
      detached: true, // so that Ctrl-C does not hit it
      stdio: ['ignore', log, log],
    });
    server.unref();
    writeFileSync(join(dir, 'pid'), String(server.pid));
    await this.untilServing(server);
  }

  /** Makes its data folder, with which it has never been a node of anything. */
  install() {
    const options = ['--no-defaults', '--force', '--skip-name-resolve', '--skip-test-db', `--user=${this.plan.user}`];
    execFileSync('mariadb-install-db', [...options, `--datadir=${join(this.dir, 'data')}`, LOG_SIZE], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
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

  /** Makes a node that has lost all others the first of a new quorum. */
  async bootstrap() {
    await this.query("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'");
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

  /** The last change it has, so that it gets those after it and not all. */
  #position() {
    if (!existsSync(join(this.dir, 'data/grastate.dat'))) return [];
    const options = ['--wsrep-cluster-address=gcomm://', '--skip-networking', `--socket=${join(this.dir, 'sock')}`];
    const all = [...storageOptions(this.plan, this.dir), ...options, '--wsrep-recover'];
    const { stderr } = spawnSync(this.plan.mariadbd, all, { encoding: 'utf8' });
    const [, position] = /Recovered position:\s*(\S+)/.exec(stderr) ?? [];
    return position ? [`--wsrep-start-position=${position}`] : [];
  }

  #logTail() {
    return readFileSync(join(this.dir, 'mariadbd.log'), 'utf8').slice(-LOG_TAIL);
  }
}
