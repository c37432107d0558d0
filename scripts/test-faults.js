// @ts-check
// `npm run test:faults`: the built service on a MariaDB that is frozen, killed and cut off under load. Takes two minutes.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { buildIfStale } from './build.js';
import { findMariadb } from './mariadb.js';

const PROJECT = dirname(import.meta.dirname);

buildIfStale();
if (!findMariadb({ install: true })) throw new Error('No mariadbd was found: apt-get install mariadb-server-core');
const { status } = spawnSync(
  process.execPath,
  [join(PROJECT, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'faults', ...process.argv.slice(2)],
  { cwd: PROJECT, stdio: 'inherit', env: { ...process.env, TEST_FAULTS: 'true' } },
);
process.exitCode = status ?? 1;
