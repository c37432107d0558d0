// @ts-check
// `npm run test:fuzz`: fuzzes the built service (docs/testing.md).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { buildIfStale } from './build.js';

buildIfStale();
const env = { ...process.env, TEST_DATABASE: process.env.TEST_DATABASE_URL ? 'mariadb' : 'sqlite' };
const run = spawn(process.execPath, ['--import', 'tsx', 'test/fuzz/main.ts'], {
  cwd: dirname(import.meta.dirname),
  env,
  stdio: 'inherit',
});
await once(run, 'exit');
process.exitCode = run.exitCode ?? 1;
