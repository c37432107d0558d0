import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgram } from '../../support/processes.js';
import { PROJECT, temporaryFolder } from '../../support/project-files.js';

const folder = temporaryFolder('no-install');

/** Runs a test command on a machine whose PATH and cache are empty. */
const run = (script: string, ...args: string[]) =>
  runProgram(process.execPath, [join(PROJECT, 'scripts', script), ...args], { env: { PATH: folder, HOME: folder } });

describe('--no-install', () => {
  it('makes npm test end with 1 and name the packages that it would install', async () => {
    const { code, stdout, stderr } = await run('test.js', '--no-install', 'test/identity/uuid.spec.ts');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('npm test needs programs that this machine does not have, and --no-install forbids');
    expect(stderr).toContain(
      'Chromium: apt-get update && apt-get install -y --no-install-recommends chromium-headless-shell\n',
    );
    expect(stderr).toContain('or set TEST_CHROMIUM=');
  });

  it('makes npm run test:firefox end with 1 and name the package of Firefox only', async () => {
    const { code, stderr } = await run('test.js', '--firefox', '--no-install');
    expect(code).toBe(1);
    expect(stderr).toContain('Firefox: apt-get update && apt-get install -y --no-install-recommends firefox-esr\n');
    expect(stderr).toContain('or set TEST_FIREFOX=');
    expect(stderr).not.toContain('Chromium');
  });

  it('makes npm run test:processes end with 1 and name the command that makes a Python with the packages', async () => {
    const { code, stderr } = await run('test.js', '--processes', '--no-install');
    expect(code).toBe(1);
    expect(stderr).toContain(`Python with requests and PyJWT: python3 -m venv ${folder}/.cache/guides-python-`);
  });

  it('makes npm run test:cluster end with 1 and name the packages that it would install or fetch', async () => {
    const { code, stdout, stderr } = await run('test-cluster.js', '--no-install');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('--no-install-recommends mariadb-server galera-4 rsync\n');
    expect(stderr).toContain(`unpacked into ${join(folder, '.cache/mysql-server-sid')}`);
  });
});
