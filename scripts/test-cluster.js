// @ts-check
// `npm run test:cluster`: tests three processes of the service on three Galera nodes, and at the same time on a group of
// three MySQL servers, because half of the time the tests of a cluster wait for a node.
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
const projects = [
  ...(missing.includes(GALERA) ? [] : ['galera']),
  ...(missing.includes(MYSQL) ? [] : ['group-replication']),
];
const codes = await Promise.all(projects.map(run));
process.exitCode = missing.includes(GALERA) ? 1 : Math.max(...codes);

/**
 * Runs the tests of one project on one cluster, one file after another, because a test file stops and cuts off nodes.
 * @param {string} project
 */
async function run(project) {
  const folder = mkdtempSync(join(tmpdir(), 'figures-'));
  const TEST_FIGURES = join(folder, 'figures');
  try {
    const all = [`--project=${project}`, '--no-file-parallelism', ...args];
    // CI, so that two runs can print lines in the same terminal
    return await runVitest(all, { TEST_CLUSTER: project, TEST_FIGURES, CI: 'true' });
  } finally {
    if (existsSync(TEST_FIGURES)) console.log(`Measured on ${project}:\n${readFileSync(TEST_FIGURES, 'utf8')}`);
    rmSync(folder, { recursive: true });
  }
}
