// @ts-check
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { asRoot, initializeMysql } from './mysql-program.js';

const READY_MS = 120_000;
const LOG_TAIL = 3_000;

/**
 * @typedef {object} GroupPlan
 * @property {string} dir
 * @property {string[]} command that runs mysqld
 * @property {string} name of the group, a UUID
 * @property {string} password of the account `app`
 * @property {number[]} ports of the members; the one after each is its own too
 */

/** One member of a private group of MySQL servers, all of which may be written to. */
export class GroupMember {
  /**
   * @param {GroupPlan} plan
   * @param {number} index
   */
  constructor(plan, index) {
    this.plan = plan;
    this.index = index;
    this.port = /** @type {number} */ (plan.ports[index]);
    this.dir = join(plan.dir, `member${index + 1}`);
  }

  /** @param {string} [database] */
  url(database = '') {
    return `mysql://app:${this.plan.password}@127.0.0.1:${this.port}/${database}`;
  }

  install() {
    initializeMysql(this.plan.command, join(this.dir, 'data'));
    writeFileSync(join(this.dir, 'init.sql'), accountSql(this.plan));
  }

  /** Starts the server and makes it a member: the first of a group, or a further one, which gets what it lacks. */
  async start({ isFirst = false } = {}) {
    const [program = '', ...options] = this.plan.command;
    const log = openSync(join(this.dir, 'mysqld.log'), 'a');
    const all = [...options, ...asRoot(), ...serverOptions(this.plan, this.dir, this.index)];
    const server = spawn(program, all, { detached: true, stdio: ['ignore', log, log] });
    server.unref();
    writeFileSync(join(this.dir, 'pid'), String(server.pid));
    const ended = once(server, 'exit').then(() => true);
    await this.#until(ended, () => this.query('SELECT 1'));
    if (isFirst) await this.query('SET GLOBAL group_replication_bootstrap_group = ON');
    await this.query(`START GROUP_REPLICATION USER='app', PASSWORD='${this.plan.password}'`);
    if (isFirst) await this.query('SET GLOBAL group_replication_bootstrap_group = OFF');
    await this.#until(ended, async () => {
      if ((await this.state()) !== 'ONLINE') throw new Error('not a member yet');
    });
  }

  /** What the member takes itself for: ONLINE, RECOVERING, ERROR … */
  async state() {
    const sql =
      'SELECT member_state AS state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid';
    const [row] = /** @type {{ state: string }[]} */ (await this.query(sql));
    return row?.state ?? '';
  }

  /** Ends it as a power cut would. */
  kill() {
    process.kill(Number(readFileSync(join(this.dir, 'pid'), 'utf8')), 'SIGKILL');
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

  /** @param {Promise<boolean>} ended @param {() => Promise<unknown>} attempt */
  async #until(ended, attempt) {
    const deadline = Date.now() + READY_MS;
    for (;;) {
      const isDone = await attempt().then(
        () => true,
        () => false,
      );
      if (isDone) return;
      if (Date.now() > deadline || (await Promise.race([ended, sleep(100)])))
        throw new Error(`member ${this.index + 1} does not serve:\n${this.#logTail()}`);
    }
  }

  #logTail() {
    return readFileSync(join(this.dir, 'mysqld.log'), 'utf8').slice(-LOG_TAIL);
  }
}

/** On each member by itself, and in no log: all have the same account before they are a group. @param {GroupPlan} plan */
function accountSql({ password }) {
  const name = "'app'@'127.0.0.1'";
  return `SET SQL_LOG_BIN=0;\nCREATE USER IF NOT EXISTS ${name} IDENTIFIED BY '${password}';\nGRANT ALL ON *.* TO ${name} WITH GRANT OPTION;\n`;
}

/** @param {GroupPlan} plan @param {string} dir @param {number} index */
function serverOptions({ ports, name }, dir, index) {
  const port = ports[index] ?? 0;
  return [
    `--datadir=${join(dir, 'data')}`,
    `--init-file=${join(dir, 'init.sql')}`,
    `--socket=${join(dir, 's.sock')}`,
    `--pid-file=${join(dir, 'mysqld.pid')}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    '--report-host=127.0.0.1',
    '--mysqlx=OFF',
    '--skip-name-resolve',
    '--secure-file-priv=NULL',
    '--default-time-zone=+00:00',
    '--max-connections=500',
    '--innodb-redo-log-capacity=64M',
    '--innodb-flush-log-at-trx-commit=0', // not durable: the other members have it
    '--innodb-doublewrite=OFF',
    `--server-id=${index + 1}`,
    '--log-bin=binlog',
    '--sync-binlog=0',
    '--gtid-mode=ON',
    '--enforce-gtid-consistency=ON',
    '--plugin-load-add=group_replication.so',
    `--loose-group_replication_group_name=${name}`,
    '--loose-group_replication_start_on_boot=OFF',
    `--loose-group_replication_local_address=127.0.0.1:${port + 1}`,
    `--loose-group_replication_group_seeds=${ports.map((each) => `127.0.0.1:${each + 1}`).join(',')}`,
    '--loose-group_replication_ip_allowlist=127.0.0.1',
    '--loose-group_replication_single_primary_mode=OFF',
    '--loose-group_replication_enforce_update_everywhere_checks=ON',
    '--loose-group_replication_recovery_get_public_key=ON',
    '--loose-group_replication_exit_state_action=READ_ONLY',
  ];
}
