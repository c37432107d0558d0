// @ts-check
import { join } from 'node:path';

export const LOG_SIZE = '--innodb-log-file-size=16M';

const STORAGE = ['--innodb-buffer-pool-size=64M', LOG_SIZE, '--binlog-format=ROW', '--innodb-autoinc-lock-mode=2'];

const SERVER = [
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

/** @typedef {import('./galera-node.js').Plan} Plan */

/**
 * What mariadbd needs to open a node's data folder.
 * @param {Plan} plan
 * @param {string} dir the node's
 */
export function storageOptions({ provider, user }, dir) {
  const as = process.getuid?.() === 0 ? [`--user=${user}`] : [];
  return [
    '--no-defaults',
    ...as,
    `--datadir=${join(dir, 'data')}`,
    ...STORAGE,
    '--wsrep-on=ON',
    `--wsrep-provider=${provider}`,
  ];
}

/**
 * What mariadbd needs to be a node, on the first port for clients and on the next three for the other nodes.
 * @param {Plan} plan
 * @param {string} dir
 * @param {number} index
 * @param {boolean} isFirst it begins a cluster, and asks no other
 */
export function serverOptions(plan, dir, index, isFirst) {
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
    ...storageOptions(plan, dir),
    ...SERVER,
    `--port=${port}`,
    `--socket=${join(dir, 'sock')}`,
    `--pid-file=${join(dir, 'mariadbd.pid')}`,
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
