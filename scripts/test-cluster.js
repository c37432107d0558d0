// @ts-check
// `npm run test:cluster`: tests three processes of the service on three Galera nodes, then on a group of three MySQL
// servers.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIfStale } from './build.js';
import { installPrograms, waysToGet, withoutNoInstall } from './install-programs.js';
import { runVitest } from './run-vitest.js';
import { GALERA, MYSQL } from './test-programs.js';

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

/** @param {string[]} args */
async function main(args) {
  const missing = installPrograms([GALERA, MYSQL], { command: 'npm run test:cluster', args });
  if (missing.includes(GALERA)) throw new Error(waysToGet([GALERA]).join('\n'));
  buildIfStale();
  const onGalera = await run('galera', args);
  if (onGalera !== 0) return onGalera;
  if (!missing.includes(MYSQL)) return run('group-replication', args);
  console.error('The tests on a MySQL group did NOT run: no MySQL server could be fetched.');
  return 0;
}

/**
 * Runs the tests of one project on one cluster, one file after another, because a test file stops and cuts off nodes.
 * @param {string} project
 * @param {string[]} args
 */
async function run(project, args) {
  const folder = mkdtempSync(join(tmpdir(), 'figures-'));
  const TEST_FIGURES = join(folder, 'figures');
  try {
    const all = [`--project=${project}`, '--no-file-parallelism', ...withoutNoInstall(args)];
    return await runVitest(all, { TEST_CLUSTER: project, TEST_FIGURES });
  } finally {
    if (existsSync(TEST_FIGURES)) console.log(`Measured:\n${readFileSync(TEST_FIGURES, 'utf8')}`);
    rmSync(folder, { recursive: true });
  }
}
