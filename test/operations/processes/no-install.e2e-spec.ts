import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgram } from '../../support/processes.js';
import { PROJECT, temporaryFolder } from '../../support/project-files.js';

const folder = temporaryFolder('no-install');

/** Runs a test command on a machine whose PATH and cache are empty. */
const run = (script: string, ...args: string[]) =>
  runProgram(process.execPath, [join(PROJECT, 'scripts', script), ...args], { env: { PATH: folder, HOME: folder } });

describe('--no-install', () => {
  it.each([
    ['npm test', ['test.js', 'test/identity/uuid.spec.ts'], 'chromium-headless-shell'],
    ['npm run test:firefox', ['test.js', '--firefox'], 'firefox-esr'],
    ['npm run test:processes', ['test.js', '--processes'], `python3 -m venv ${folder}/.cache/guides-python-`],
    ['npm run test:cluster', ['test-cluster.js'], `mysql-server-core ${folder}/.cache/mysql-server-sid`],
  ] as const)('makes %s end with 1 and print the command that it would run', async (_name, [script, ...args], text) => {
    const { code, stdout, stderr } = await run(script, ...args, '--no-install');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(text);
  });
});
