// @ts-check
// `npm run test:cluster`: tests three processes of the service on three Galera nodes, then on a group of three MySQL
// servers.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MYSQL } from '../test/cluster/servers/mysql-server.js';
import { buildIfStale } from './build.js';
import { GALERA, installPrograms, missingText } from './programs.js';
import { runVitest } from './run-vitest.js';

const args = process.argv.slice(2);
const missing = installPrograms([GALERA, MYSQL], args);
if (missing.length > 0) console.error(missingText(missing));
buildIfStale();
process.exitCode = missing.includes(GALERA) ? 1 : await run('galera');
if (process.exitCode === 0 && !missing.includes(MYSQL)) process.exitCode = await run('group-replication');

/**
 * Runs the tests of one project on one cluster, one file after another, because a test file stops and cuts off nodes.
 * @param {string} project
 */
async function run(project) {
  const folder = mkdtempSync(join(tmpdir(), 'figures-'));
  const TEST_FIGURES = join(folder, 'figures');
  try {
    const all = [`--project=${project}`, '--no-file-parallelism', ...args];
    return await runVitest(all, { TEST_CLUSTER: project, TEST_FIGURES });
  } finally {
    if (existsSync(TEST_FIGURES)) console.log(`Measured:\n${readFileSync(TEST_FIGURES, 'utf8')}`);
    rmSync(folder, { recursive: true });
  }
}
