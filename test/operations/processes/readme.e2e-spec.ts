import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { canRunPages, DEMO_URL, DemoService } from '../../support/demo-service.js';

describe.runIf(canRunPages)('README.md and docs/integrating/walkthrough.md', () => {
  const service = new DemoService();

  /** Runs the shell blocks of a page as one script, and resolves to its output. */
  async function outputOf(page: string): Promise<string> {
    const blocks = readFileSync(page, 'utf8').matchAll(/^```sh\n(.*?)^```$/gms);
    const script = Array.from(blocks, ([, lines]) => lines)
      .join('')
      .replaceAll(DEMO_URL, service.url)
      .replaceAll('cookies.txt', join(service.database.folder, 'cookies.txt'));
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], {
      env: service.environment,
    });
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
