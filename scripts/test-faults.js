// @ts-check
// `npm run test:faults`: tests the built service under load while its MariaDB, its processes, the disk, the clock or the
// processor fail, its longest waits, and a registry of 100,000 clients. docs/testing.md lists the files.
import { buildIfStale } from './build.js';
import { installPrograms, waysToGet, withoutNoInstall } from './install-programs.js';
import { runVitest } from './run-vitest.js';
import { MARIADB } from './test-programs.js';

const args = process.argv.slice(2);
try {
  const missing = installPrograms([MARIADB], { command: 'npm run test:faults', args });
  if (missing.length > 0) throw new Error(waysToGet(missing).join('\n'));
  buildIfStale();
  process.exitCode = await runVitest(['--project', 'faults', ...withoutNoInstall(args)], { TEST_FAULTS: 'true' });
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}
