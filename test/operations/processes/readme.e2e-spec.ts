import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
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

  it.each<[string, NodeJS.Signals, number]>([
    ['npm gets SIGTERM', 'SIGTERM', 1],
    ['Ctrl-C sends SIGINT to npm and to the service', 'SIGINT', -1], // the processes of the group
  ])('start a service by npm start that stops when %s', async (_, signal, sign) => {
    const env = { ...service.environment, DATA_DIR: join(service.database.folder, 'npm'), PORT: '0', AUTH_URL: '' };
    const npm = spawn('npm', ['start'], { env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
    let [stdout, url] = ['', ''];
    for await (const text of npm.stdout.setEncoding('utf8')) {
      stdout += text;
      if (url) continue;
      [url = ''] = /http:\/\/localhost:\d+\/try/.exec(stdout) ?? [];
      if (url) process.kill(sign * (npm.pid as number), signal);
    }
    // the service held its output open until it ended
    await expect(fetch(url)).rejects.toThrow('fetch failed');
    if (npm.exitCode === null) await once(npm, 'exit');
    expect(npm.exitCode).toBe(0);
  });
});
