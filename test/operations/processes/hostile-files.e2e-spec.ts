import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { PORTS, runCli, type ServiceProcess, startServiceProcess, TestProcess } from '../../support/processes.js';
import { temporaryFolder } from '../../support/project-files.js';
import { writeRegistry } from '../../support/test-registry.js';
import { request } from '../../support/test-service.js';

const folder = temporaryFolder('hostile-files');
const REGISTRY_FILE = join(folder, 'registry.yaml');
const ADMIN_TOKENS_FILE = join(folder, 'admin-tokens');

const BRACKET_COUNT = 300_000;
const BRACKETS = '['.repeat(BRACKET_COUNT);
const NESTED = '['.repeat(BRACKET_COUNT) + ']'.repeat(BRACKET_COUNT);

/** `test/registry/yaml-document.spec.ts` has more of them, which the same function rejects. */
const REGISTRIES: [string, string, RegExp][] = [
  ['brackets, padded to 600 KB', BRACKETS + ' '.repeat(BRACKET_COUNT), /nested deeper/],
  ['an anchor that contains itself', 'clients: &a [*a]', /an alias has no anchor, or expands/],
];

const startFailure = async (environment: Record<string, string>) => {
  const { code, stderr } = await TestProcess.start('main.js', [], { ...PORTS, DATA_DIR: folder, ...environment }).ended;
  expect(code).toBe(1);
  return stderr;
};

const notApplied = async ({ managementUrl }: ServiceProcess, file: string) => {
  const { text } = await request(`${managementUrl}/metrics`, {});
  return text.includes(`cas_file_invalid{file="${file}"} 1\n`);
};

describe('protocol §8.1: a file that would exhaust the parser', { timeout: 300_000 }, () => {
  let service: ServiceProcess;
  beforeAll(async () => {
    writeRegistry(REGISTRY_FILE);
    writeFileSync(ADMIN_TOKENS_FILE, `alice:read:${'a'.repeat(32)}`);
    service = await startServiceProcess({ DATA_DIR: join(folder, 'data'), REGISTRY_FILE, ADMIN_TOKENS_FILE });
  });
  afterAll(() => service?.process.signal('SIGKILL'));

  it.each(REGISTRIES)('is invalid as a registry file, and changes nothing: %s', async (_, text, violation) => {
    const path = join(folder, 'hostile.yaml');
    writeFileSync(path, text);
    const { code, stdout, stderr } = await runCli(['registry', 'apply', path], { DATA_DIR: join(folder, 'data') });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(violation);
    const body = JSON.stringify(cookieBody());
    expect((await request(service.url + TOKEN, { method: 'POST', body })).status).toBe(200);
  });

  it('is invalid as a registry file at the start, which ends with exit code 1 and the position', async () => {
    const path = join(folder, 'brackets.yaml');
    writeFileSync(path, BRACKETS + ' '.repeat(BRACKET_COUNT));
    expect(await startFailure({ REGISTRY_FILE: path })).toBe(
      'the registry file is invalid:\n  line 1: nested deeper than 64 levels\n',
    );
  });

  it('is invalid as a registry file at the start if it is empty', async () => {
    const path = join(folder, 'empty.yaml');
    writeFileSync(path, ' \n');
    expect(await startFailure({ REGISTRY_FILE: path })).toBe('the registry file is invalid:\n  the file is empty\n');
  });

  it.each([
    ['SIGNING_KEYS_FILE', BRACKETS, /^SIGNING_KEYS_FILE: must be /],
    ['TRUSTED_AGENT_ISSUERS_FILE', NESTED, /^ +TRUSTED_AGENT_ISSUERS/m],
  ])('is invalid at the start as another file too: %s', async (name, text, violation) => {
    const path = join(folder, 'other-file');
    writeFileSync(path, text);
    expect(await startFailure({ [name]: path })).toMatch(violation);
  });

  it('is invalid as a file of admin tokens that the process follows, and the process continues', async () => {
    writeFileSync(ADMIN_TOKENS_FILE, NESTED);
    await expect.poll(() => notApplied(service, 'ADMIN_TOKENS_FILE')).toBe(true);
    expect(await service.terminate()).toBe(0);
  });
});
