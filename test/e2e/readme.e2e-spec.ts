import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, onMariadb, type TestDatabase } from '../../src/testing/test-database.js';
import { type ServiceProcess, startServiceProcess } from '../support/processes.js';

/** The URL in the pages; the test's service has another port. */
const AUTH_URL = 'http://localhost:3000';

const hasCurl = (() => {
  try {
    return execFileSync('curl', ['--version']).length > 0;
  } catch {
    return false;
  }
})();

/** The pages describe a first run, which uses SQLite. */
describe.runIf(hasCurl && !onMariadb)('README.md and docs/integrating/walkthrough.md', () => {
  let database: TestDatabase;
  let service: ServiceProcess;
  let dataFolder: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    dataFolder = join(database.folder, 'var');
    service = await startServiceProcess({ DATA_DIR: dataFolder, AUTH_URL });
  });
  afterAll(async () => {
    await service?.terminate();
    await database?.remove();
  });

  /** Runs the shell blocks of a page as one script, and resolves to its output. */
  async function outputOf(page: string): Promise<string> {
    const blocks = readFileSync(page, 'utf8').matchAll(/^```sh\n(.*?)^```$/gms);
    const script = Array.from(blocks, ([, lines]) => lines)
      .join('')
      .replaceAll(AUTH_URL, service.url.replace('127.0.0.1', 'localhost'))
      .replaceAll('cookies.txt', join(database.folder, 'cookies.txt'));
    const env = { ...process.env, DATA_DIR: dataFolder, AUTH_URL };
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env });
    return stdout;
  }

  it('get a first token with the command in README.md', async () => {
    const fields = ['access_token', 'entity_id', 'expires_in', 'organization_id', 'token_type'];
    expect(Object.keys(JSON.parse(await outputOf('README.md'))).sort()).toEqual(fields);
  });

  it('walk through the life of a customer in commands that work when pasted', async () => {
    const stdout = await outputOf('docs/integrating/walkthrough.md');
    const [first, returning, inGroup, info, ended, rejected] = stdout.trim().split(/\n|(?<=\})(?=\{)|(?<=\})(?=[A-Z])/);
    expect(returning).toBe(first);
    expect(inGroup).not.toBe(first);
    expect(JSON.parse(info as string)).toMatchObject({ token_type: 'Bearer', entity_id: expect.any(String) });
    expect(ended).toBe('{}');
    expect(rejected).toBe('Invalid access token');
  });
});
