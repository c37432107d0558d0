import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bearer } from '../../support/authorization-headers.js';
import { type ServiceProcess, startServiceProcess } from '../../support/processes.js';
import { request } from '../../support/test-service.js';

const tokenOf = (name: string) => `token-of-${name}-with-32-characters-or-more`;
const [ALICE, BOB, CAROL] = [tokenOf('alice'), tokenOf('bob'), tokenOf('carol')] as const;

let service: ServiceProcess;
const folder = mkdtempSync(join(tmpdir(), 'operator-tokens-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const path = () => join(folder, 'tokens');
const write = (text: string) => writeFileSync(path(), text);
const start = (variable: 'ADMIN_TOKEN' | 'ADMIN_TOKENS') =>
  startServiceProcess({ DATA_DIR: join(folder, 'data'), [`${variable}_FILE`]: path() }, folder);
const statusOf = async (token: string) =>
  (await request(`${service.managementUrl}/admin/clients`, { headers: bearer(token) })).status;

/** Waits until exactly these tokens are valid. */
const expectValid = (...tokens: string[]) =>
  expect
    .poll(async () => {
      const statuses = await Promise.all([ALICE, BOB, CAROL].map(statusOf));
      return statuses.map((status, index) => (status === 200 ? [ALICE, BOB, CAROL][index] : status));
    })
    .toEqual([ALICE, BOB, CAROL].map((token) => (tokens.includes(token) ? token : 401)));

const invalidFiles = async () =>
  (await request(`${service.managementUrl}/metrics`, {})).text.match(/^cas_file_invalid\{file="ADMIN.* 1$/gm)?.length ??
  0;

describe('a changed file of ADMIN_TOKENS', () => {
  beforeAll(async () => {
    write(`alice:${ALICE}\nbob:${BOB}\n`);
    service = await start('ADMIN_TOKENS');
  });
  afterAll(() => service?.terminate());
  beforeEach(async () => {
    write(`alice:${ALICE}\nbob:${BOB}\n`);
    await expectValid(ALICE, BOB);
  });

  it('ends a removed token and admits an added one without a restart', async () => {
    write(`bob:${BOB}\ncarol:${CAROL}\n`);
    await expectValid(BOB, CAROL);
    // a cluster replaces the file
    writeFileSync(`${path()}.new`, `carol:${CAROL}\n`);
    renameSync(`${path()}.new`, path());
    await expectValid(CAROL);
    expect(await invalidFiles()).toBe(0);
    expect(service.process.stdout).not.toContain(BOB);
  });

  it.each([
    ['has a malformed line', () => write(`bob:${BOB}\ncarol:${CAROL}\nMARKED\n`)],
    ['has a name twice', () => write(`bob:${BOB}\ncarol:${CAROL}\ncarol:MARKED-${CAROL}\n`)],
  ])('ends a removed token also if the file %s, and then adds none until the file is valid', async (_, damage) => {
    damage();
    await expectValid(BOB);
    await expect.poll(invalidFiles).toBe(1);
    expect(service.process.stdout).toContain('each earlier token that the file still lists stays in use');
    expect(service.process.stdout).not.toMatch(/MARKED|token-of-/);
    write(`bob:${BOB}\ncarol:${CAROL}\n`);
    await expectValid(BOB, CAROL);
    await expect.poll(invalidFiles).toBe(0);
  });

  it.each([
    ['is empty', () => write('')],
    ['is deleted', () => rmSync(path())],
  ])('leaves no token valid while the file %s', async (_, remove) => {
    remove();
    await expectValid();
  });
});

describe('a changed file of ADMIN_TOKEN', () => {
  afterEach(() => service?.terminate());

  it('is in use without a restart, also if the file was empty at the start', async () => {
    write('\n');
    service = await start('ADMIN_TOKEN');
    await expectValid();
    write(`${ALICE},${BOB}`);
    await expectValid(ALICE, BOB);
    write(`${BOB},${CAROL},too-short`);
    await expectValid(BOB);
  });

  it('never have the same token: the file that gets it second adds none until the other one loses it', async () => {
    const named = join(folder, 'named');
    write(CAROL);
    writeFileSync(named, `alice:${ALICE}\nbob:${BOB}\n`);
    const environment = { DATA_DIR: join(folder, 'data'), ADMIN_TOKEN_FILE: path(), ADMIN_TOKENS_FILE: named };
    service = await startServiceProcess(environment, folder);
    await expectValid(ALICE, BOB, CAROL);
    writeFileSync(named, `alice:${ALICE}\ncarol:${CAROL}\n`);
    await expectValid(ALICE, CAROL);
    await expect.poll(invalidFiles).toBe(1);
    expect(service.process.stdout).toContain('must not have a token of ADMIN_TOKEN');
    expect(service.process.stdout).not.toContain('token-of-');
    write(BOB);
    await expectValid(ALICE, BOB, CAROL);
    await expect.poll(invalidFiles).toBe(0);
    write(ALICE);
    await expectValid(ALICE, CAROL);
    await expect.poll(invalidFiles).toBe(1);
  });
});
