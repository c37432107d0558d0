import { writeFileSync } from 'node:fs';
import { accountSql, ClusterNode, type ClusterPlan } from './cluster-node.js';
import { asRoot, initializeMysql } from './mysql-server.js';

export interface GroupReplicationPlan extends ClusterPlan {
  kind: 'group-replication';
  groupName: string;
}

interface Member {
  isItself: number;
  state: string;
  port: number;
}

const SERVER = [
  '--bind-address=127.0.0.1',
  '--report-host=127.0.0.1',
  '--mysqlx=OFF',
  '--skip-name-resolve',
  '--secure-file-priv=NULL',
  '--default-time-zone=+00:00',
  '--max-connections=500',
  '--innodb-redo-log-capacity=64M',
  '--innodb-flush-log-at-trx-commit=2', // with 0, a killed node has lost transactions that its binary log contains
  '--innodb-doublewrite=OFF',
  '--log-bin=binlog',
  '--sync-binlog=0',
  '--gtid-mode=ON',
  '--enforce-gtid-consistency=ON',
  '--plugin-load-add=group_replication.so',
  '--loose-group_replication_start_on_boot=OFF',
  '--loose-group_replication_ip_allowlist=127.0.0.1',
  '--loose-group_replication_single_primary_mode=OFF',
  '--loose-group_replication_enforce_update_everywhere_checks=ON',
  '--loose-group_replication_recovery_get_public_key=ON',
  '--loose-group_replication_exit_state_action=READ_ONLY',
  '--loose-group_replication_member_expel_timeout=0', // while the group still has a lost member, nearly all statements wait
];

/** One member of a private group of MySQL servers (Group Replication, multi-primary). */
export class GroupReplicationNode extends ClusterNode<GroupReplicationPlan> {
  protected override readonly scheme = 'mysql';

  override install(): void {
    initializeMysql(this.plan.command, this.path('data'));
    // Each member creates the account without a binary log, so that all have it before they form a group.
    // Then the server rejects writes until it is a member. A restarted server would else accept those of its pod first,
    // and the group does not admit a server with writes of its own.
    const sql = `SET SQL_LOG_BIN=0;\n${accountSql(this.plan)}SET GLOBAL super_read_only=ON;\n`;
    writeFileSync(this.path('init.sql'), sql);
  }

  override async start({ isFirst = false } = {}): Promise<void> {
    const server = this.spawnServer([...asRoot(), ...this.serverOptions()]);
    await this.waitUntil(() => this.query('SELECT 1').then(() => true), server);
    if (isFirst) await this.query('SET GLOBAL group_replication_bootstrap_group = ON');
    if (!isFirst) await this.waitUntil(() => this.isExpelled(), server);
    await this.waitUntil(() => this.join(), server);
    if (isFirst) await this.query('SET GLOBAL group_replication_bootstrap_group = OFF');
  }

  /**
   * Whether the other members no longer count the killed server of this address. Each earlier attempt to join looks to
   * them as if the killed server lived, and delays that.
   */
  private async isExpelled(): Promise<boolean> {
    const others = this.plan.ports.flatMap((_, index) =>
      index === this.index ? [] : [new GroupReplicationNode(this.plan, index)],
    );
    const lists = await Promise.allSettled(others.map((node) => node.members()));
    return lists.every((list) => list.status === 'rejected' || list.value.every(({ port }) => port !== this.port));
  }

  /**
   * Joins the group unless the server is a member. Says whether it is one now. An attempt to join may fail, so it needs
   * repeating.
   */
  private async join(): Promise<boolean> {
    const own = (await this.members()).find(({ isItself }) => isItself)?.state;
    if (own === 'ONLINE' || own === 'RECOVERING') return own === 'ONLINE';
    await this.query('STOP GROUP_REPLICATION'); // ends a failed attempt; does nothing before the first one
    await this.query(`START GROUP_REPLICATION USER='app', PASSWORD='${this.plan.password}'`);
    return false;
  }

  /** A healthy node is `ONLINE ONLINE ONLINE`. */
  override async state(): Promise<string> {
    return (await this.members()).map(({ state }) => state).join(' ');
  }

  /** The members of the group and their states: ONLINE, RECOVERING, UNREACHABLE, ERROR … */
  private async members(): Promise<Member[]> {
    const sql = `SELECT member_id = @@server_uuid AS isItself, member_state AS state, member_port AS port
      FROM performance_schema.replication_group_members`;
    return (await this.query(sql)) as Member[];
  }

  /** The member's first port is for clients, the next one for the other members. */
  private serverOptions(): string[] {
    const { ports, groupName } = this.plan;
    return [
      ...SERVER,
      `--datadir=${this.path('data')}`,
      `--init-file=${this.path('init.sql')}`,
      `--socket=${this.path('s.sock')}`,
      `--pid-file=${this.path('mysqld.pid')}`,
      `--port=${this.port}`,
      `--server-id=${this.index + 1}`,
      `--loose-group_replication_group_name=${groupName}`,
      `--loose-group_replication_local_address=127.0.0.1:${this.port + 1}`,
      `--loose-group_replication_group_seeds=${ports.map((each) => `127.0.0.1:${each + 1}`).join(',')}`,
    ];
  }
}
