import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, onMariadb, type TestDatabase } from '../../src/testing/test-database.js';
import { type ServiceProcess, startServiceProcess } from '../support/processes.js';

/** The address that README.md writes; the test's service has another port. */
const AUTH_URL = 'http://localhost:3000';

const hasCurl = (() => {
  try {
    return execFileSync('curl', ['--version']).length > 0;
  } catch {
    return false;
  }
})();

/** README.md walks through a first run, which is on SQLite. */
describe.runIf(hasCurl && !onMariadb)('README.md', () => {
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

  it('walks through the life of a customer in lines that work when pasted', async () => {
    const blocks = readFileSync('README.md', 'utf8').matchAll(/^```sh\n(.*?)^```$/gms);
    const script = Array.from(blocks, ([, lines]) => lines)
      .join('')
      .replaceAll(AUTH_URL, service.url.replace('127.0.0.1', 'localhost'))
      .replaceAll('cookies.txt', join(database.folder, 'cookies.txt'));
    const env = { ...process.env, DATA_DIR: dataFolder, AUTH_URL };
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { env });
    const [first, returning, inGroup, info, ended, refused] = stdout.trim().split(/\n|(?<=\})(?=\{)|(?<=\})(?=[A-Z])/);
    expect(returning).toBe(first);
    expect(inGroup).not.toBe(first);
    expect(JSON.parse(info as string)).toMatchObject({ token_type: 'Bearer', entity_id: expect.any(String) });
    expect(ended).toBe('{}');
    expect(refused).toBe('Invalid access token');
  });
});
