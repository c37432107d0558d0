// @ts-check
// `npm run test:faults`: tests the built service under load while its MariaDB, its processes, the disk, the clock or the
// processor fail, its longest waits, and a registry of 100,000 clients.
import { buildIfStale } from './build.js';
import { installPrograms, MARIADB, missingText } from './programs.js';
import { runVitest } from './run-vitest.js';

const args = process.argv.slice(2);
const missing = installPrograms([MARIADB], args);
if (missing.length > 0) throw new Error(missingText(missing));
buildIfStale();
process.exitCode = await runVitest(['--project', 'faults', ...args], { TEST_FAULTS: 'true' });
