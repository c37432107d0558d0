import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';

const SCRIPTS = join(import.meta.dirname, '../../../scripts');

const folder = mkdtempSync(join(tmpdir(), 'no-install-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a test command on a machine whose PATH and cache are empty. */
function run(script: string, ...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const env = { PATH: folder, HOME: folder };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [join(SCRIPTS, script), ...args], { env }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

describe('--no-install', () => {
  it('makes npm test end with 1 and name the packages that it would install', async () => {
    const { code, stdout, stderr } = await run('test.js', '--no-install', 'test/identity/uuid.spec.ts');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('npm test needs programs that this machine does not have, and --no-install forbids');
    expect(stderr).toContain('Chromium: apt-get update && apt-get install -y --no-install-recommends chromium\n');
    expect(stderr).toContain('or set TEST_CHROMIUM=');
    expect(stderr).toContain(
      'Redis server: apt-get update && apt-get install -y --no-install-recommends redis-server\n',
    );
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
