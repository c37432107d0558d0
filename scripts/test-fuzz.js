// @ts-check
// `npm run test:fuzz`: fuzzes the built service on SQLite, or on the server that TEST_DATABASE_URL names;
// `npm run test:fuzz -- mariadb`: on a private MariaDB (docs/testing.md).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { buildIfStale } from './build.js';
import { startMariadb } from './mariadb.js';

buildIfStale();
const database = process.argv.includes('mariadb') ? await startMariadb() : undefined;
const TEST_DATABASE_URL = database?.url() ?? process.env.TEST_DATABASE_URL;
const env = { ...process.env, TEST_DATABASE_URL, TEST_DATABASE: TEST_DATABASE_URL ? 'mariadb' : 'sqlite' };
const run = spawn(process.execPath, ['--import', 'tsx', 'test/fuzz/main.ts'], {
  cwd: dirname(import.meta.dirname),
  env,
  stdio: 'inherit',
});
await once(run, 'exit');
process.exitCode = run.exitCode ?? 1;
await database?.stop();
