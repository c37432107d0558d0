import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { dataTemplate } from '../../../scripts/mariadb.js';
import { accountSql, ClusterNode } from './cluster-node.js';
import { type GaleraPlan, serverOptions, storageOptions } from './galera-options.js';

/** One node of a private Galera cluster. */
export class GaleraNode extends ClusterNode<GaleraPlan> {
  protected override readonly scheme = 'mariadb';

  override install(): void {
    const { user, command } = this.plan;
    writeFileSync(this.path('init.sql'), accountSql(this.plan));
    cpSync(dataTemplate(command[0] as string), this.path('data'), { recursive: true });
    execFileSync('chown', ['-R', user, this.folder]);
  }

  /** A further node copies the data from the other nodes. A killed node continues from its last position. */
  override async start({ isFirst = false } = {}): Promise<void> {
    const role = isFirst ? [`--init-file=${this.path('init.sql')}`] : this.startPosition();
    const server = this.spawnServer([...serverOptions(this.plan, this.folder, this.index, isFirst), ...role]);
    await this.waitUntil(() => this.isSynced(), server);
  }

  /** Waits until the node is part of a cluster with a quorum and has all data of the others. */
  untilServing(): Promise<void> {
    return this.waitUntil(() => this.isSynced());
  }

  /** Separates the node from the other nodes. Clients still reach it. */
  async cutOff(): Promise<void> {
    await this.query("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'");
  }

  async reconnect(): Promise<void> {
    await this.query("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'");
  }

  /** Makes a node that has lost all others the first of a new quorum. */
  async bootstrap(): Promise<void> {
    await this.query("SET GLOBAL wsrep_provider_options = 'pc.bootstrap=1'");
  }

  /** A healthy node is `Primary Synced 3 OPERATIONAL`. */
  override async state(): Promise<string> {
    const names = ['wsrep_cluster_status', 'wsrep_local_state_comment', 'wsrep_cluster_size', 'wsrep_evs_state'];
    return (await Promise.all(names.map((name) => this.status(name)))).join(' ');
  }

  /** A counter or state of the node, as `SHOW STATUS` names it. */
  async status(name: string): Promise<string> {
    const [row] = (await this.query(`SHOW GLOBAL STATUS LIKE '${name}'`)) as { Value: string }[];
    return row?.Value ?? '';
  }

  private async isSynced(): Promise<boolean> {
    return (await this.status('wsrep_local_state_comment')) === 'Synced';
  }

  /** The last change that the node has, so that the others send only the changes after it. */
  private startPosition(): string[] {
    if (!existsSync(this.path('data/grastate.dat'))) return [];
    const [program = '', ...common] = this.plan.command;
    const options = ['--wsrep-cluster-address=gcomm://', '--skip-networking', `--socket=${this.path('sock')}`];
    const all = [...common, ...storageOptions(this.plan, this.folder), ...options, '--wsrep-recover'];
    const { stderr } = spawnSync(program, all, { encoding: 'utf8' });
    const [, position] = /Recovered position:\s*(\S+)/.exec(stderr) ?? [];
    return position ? [`--wsrep-start-position=${position}`] : [];
  }
}
