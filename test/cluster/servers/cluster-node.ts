import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';

const READY_TIMEOUT_MS = 240_000;
const POLL_INTERVAL_MS = 50;
const LOG_TAIL_CHARACTERS = 3_000;

/** The description of a cluster of database servers, which the starting process passes to the test processes. */
export interface ClusterPlan {
  kind: 'galera' | 'group-replication';
  /** The folder of the cluster. Each node has a folder below it. */
  folder: string;
  /** Program and first parameters of a server. */
  command: string[];
  /** Password of the account `app`, which may do everything. */
  password: string;
  /** The client port of each node. The next `PORTS_PER_NODE - 1` ports belong to the same node. */
  ports: number[];
}

/** A database server that tests can kill, freeze and cut off. Each kind of cluster starts its servers differently. */
export abstract class ClusterNode<Plan extends ClusterPlan = ClusterPlan> {
  protected abstract readonly scheme: 'mariadb' | 'mysql';
  readonly port: number;
  readonly folder: string;

  constructor(
    readonly plan: Plan,
    readonly index: number,
  ) {
    this.port = plan.ports[index] as number;
    this.folder = join(plan.folder, `node${index + 1}`);
  }

  /** Creates the data folder of a node that has never been a member of a cluster. */
  abstract install(): void;

  /** Starts the server and waits until it serves. The first node founds the cluster; a further node joins it. */
  abstract start(options?: { isFirst?: boolean }): Promise<void>;

  /** The state of the node from its own view, for error messages. */
  abstract state(): Promise<string>;

  url(database = ''): string {
    return `${this.scheme}://app:${this.plan.password}@127.0.0.1:${this.port}/${database}`;
  }

  async query(sql: string): Promise<unknown> {
    const account = { host: '127.0.0.1', port: this.port, user: 'app', password: this.plan.password };
    const connection = await mysql.createConnection({ ...account, connectTimeout: 2_000 });
    try {
      return (await connection.query(sql))[0];
    } finally {
      connection.destroy();
    }
  }

  /** Ends the server as a power cut would. */
  kill(): void {
    process.kill(this.pid, 'SIGKILL');
  }

  freeze(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  thaw(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  protected path(name: string): string {
    return join(this.folder, name);
  }

  protected spawnServer(options: string[]): ChildProcess {
    const [program = '', ...common] = this.plan.command;
    const log = openSync(this.path('server.log'), 'a');
    const server = spawn(program, [...common, ...options], {
      detached: true, // Ctrl-C must not end the server before the cleanup process does.
      stdio: ['ignore', log, log],
    });
    server.unref();
    writeFileSync(this.path('pid'), String(server.pid));
    return server;
  }

  /** Waits until a check succeeds. Fails when the server ends or takes too long. */
  protected async waitUntil(check: () => Promise<boolean>, server?: ChildProcess): Promise<void> {
    const ended = server && once(server, 'exit').then(() => true);
    const deadline = Date.now() + READY_TIMEOUT_MS;
    while (!(await check().catch(() => false))) {
      const hasFailed = Date.now() > deadline || (await Promise.race([ended, sleep(POLL_INTERVAL_MS)]));
      if (hasFailed) throw new Error(`node ${this.index + 1} does not serve:\n${this.logTail()}`);
    }
  }

  private get pid(): number {
    return Number(readFileSync(this.path('pid'), 'utf8'));
  }

  private logTail(): string {
    return readFileSync(this.path('server.log'), 'utf8').slice(-LOG_TAIL_CHARACTERS);
  }
}

/** The statements that create the account `app`. `--init-file` needs each statement on its own line. */
export function accountSql({ password }: ClusterPlan): string {
  const account = "'app'@'127.0.0.1'";
  return `CREATE USER IF NOT EXISTS ${account} IDENTIFIED BY '${password}';\nGRANT ALL ON *.* TO ${account} WITH GRANT OPTION;\n`;
}
