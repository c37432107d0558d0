// @ts-check
// `npm run test:upgrade`: tests processes of release 1 and of this build on one MariaDB, before, during and after the
// upgrade.
import { buildIfStale } from './build.js';
import { installPrograms, waysToGet, withoutNoInstall } from './install-programs.js';
import { buildRelease1, RELEASE_1_COMMIT } from './release-1.js';
import { runVitest } from './run-vitest.js';
import { MARIADB } from './test-programs.js';

const args = process.argv.slice(2);
try {
  process.exitCode = await main();
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

async function main() {
  const missing = installPrograms([MARIADB], { command: 'npm run test:upgrade', args });
  if (missing.length > 0) throw new Error(waysToGet(missing).join('\n'));
  const TEST_RELEASE_1 = buildRelease1();
  if (!TEST_RELEASE_1) {
    console.error(`SKIPPED: the tests of the upgrade did NOT run. The git history lacks ${RELEASE_1_COMMIT}.`);
    console.error('In a shallow clone: git fetch --unshallow');
    return 0;
  }
  buildIfStale();
  return runVitest(['--project', 'upgrade', ...withoutNoInstall(args)], { TEST_RELEASE_1 });
}
