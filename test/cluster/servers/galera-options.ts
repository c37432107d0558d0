import { join } from 'node:path';
import type { ClusterPlan } from './cluster-node.js';

export interface GaleraPlan extends ClusterPlan {
  kind: 'galera';
  provider: string;
  /** The operating system's user that the servers run as. */
  user: string;
}

const STORAGE = [
  '--innodb-buffer-pool-size=64M',
  '--innodb-log-file-size=16M', // as in the template, so that the server need not resize it
  '--binlog-format=ROW',
  '--innodb-autoinc-lock-mode=2',
];

const SERVER = [
  '--bind-address=127.0.0.1',
  '--skip-name-resolve',
  '--character-set-server=utf8mb4',
  '--default-time-zone=+00:00',
  '--performance-schema=OFF',
  '--max-connections=500',
  '--innodb-flush-log-at-trx-commit=0', // not durable: the other nodes have the data
  '--innodb-doublewrite=0',
  '--innodb-flush-method=nosync',
];

/** What mariadbd needs to open a node's data folder. */
export function storageOptions({ provider, user }: GaleraPlan, folder: string): string[] {
  const as = process.getuid?.() === 0 ? [`--user=${user}`] : [];
  return [...as, `--datadir=${join(folder, 'data')}`, ...STORAGE, '--wsrep-on=ON', `--wsrep-provider=${provider}`];
}

/** What mariadbd needs to be a node: the node's first port is for clients, the next three are for the other nodes. */
export function serverOptions(plan: GaleraPlan, folder: string, index: number, isFirst: boolean): string[] {
  const port = plan.ports[index] ?? 0;
  const others = plan.ports.filter((other) => other !== port).map((other) => `127.0.0.1:${other + 1}`);
  const provider = [
    `gmcast.listen_addr=tcp://127.0.0.1:${port + 1}`,
    `base_host=127.0.0.1;base_port=${port + 1}`,
    `ist.recv_addr=127.0.0.1:${port + 2}`,
    'pc.recovery=false;gcache.size=64M',
    ...(process.env.GALERA_PROVIDER_OPTIONS ?? '').split(';').filter(Boolean), // evs.suspect_timeout=PT1S
  ];
  return [
    ...storageOptions(plan, folder),
    ...SERVER,
    `--port=${port}`,
    `--socket=${join(folder, 'sock')}`,
    `--pid-file=${join(folder, 'mariadbd.pid')}`,
    '--wsrep-cluster-name=private',
    `--wsrep-cluster-address=gcomm://${isFirst ? '' : others.join(',')}`,
    `--wsrep-node-name=node${index + 1}`,
    '--wsrep-node-address=127.0.0.1',
    `--wsrep-node-incoming-address=127.0.0.1:${port}`,
    '--wsrep-sst-method=rsync',
    `--wsrep-sst-receive-address=127.0.0.1:${port + 3}`,
    `--wsrep-provider-options=${provider.join(';')}`,
  ];
}
