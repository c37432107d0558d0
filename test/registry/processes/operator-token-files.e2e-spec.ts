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
const start = () => startServiceProcess({ DATA_DIR: join(folder, 'data'), ADMIN_TOKENS_FILE: path() }, folder);
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

const LINES = { alice: `alice:all:${ALICE}\n`, bob: `bob:all:${BOB}\n`, carol: `carol:all:${CAROL}\n` };

describe('a changed file of ADMIN_TOKENS', () => {
  beforeAll(async () => {
    write(LINES.alice + LINES.bob);
    service = await start();
  });
  afterAll(() => service?.terminate());
  beforeEach(async () => {
    write(LINES.alice + LINES.bob);
    await expectValid(ALICE, BOB);
  });

  it('ends a removed token and admits an added one without a restart', async () => {
    write(LINES.bob + LINES.carol);
    await expectValid(BOB, CAROL);
    // a cluster replaces the file
    writeFileSync(`${path()}.new`, LINES.carol);
    renameSync(`${path()}.new`, path());
    await expectValid(CAROL);
    expect(await invalidFiles()).toBe(0);
    expect(service.process.stdout).not.toContain(BOB);
  });

  it('changes the role of a token without a restart', async () => {
    write(LINES.alice + LINES.bob.replace(':all:', ':support:'));
    await expect.poll(() => statusOf(BOB)).toBe(403);
    expect(await statusOf(ALICE)).toBe(200);
  });

  it.each([
    ['has a malformed line', () => write(`${LINES.bob}${LINES.carol}MARKED\n`)],
    ['has a token without a role', () => write(`${LINES.carol}bob:${BOB}\n`)],
    ['has an unknown role', () => write(LINES.carol + LINES.bob.replace(':all:', ':ALL:'))],
    ['has a name twice', () => write(`${LINES.bob}${LINES.carol}carol:all:MARKED-${CAROL}\n`)],
    ['has a token twice, with different roles', () => write(`${LINES.carol}dave:read:${CAROL}\n`)],
    ['is larger than 128 KiB', () => write(LINES.carol + ' '.repeat(131_072))],
    ['is deleted', () => rmSync(path())],
  ])('changes nothing if the file %s, and admits no token that was removed before', async (_, damage) => {
    write(LINES.alice);
    await expectValid(ALICE);
    damage();
    await expect.poll(invalidFiles).toBe(1);
    await expectValid(ALICE);
    expect(service.process.stdout).toContain('ADMIN_TOKENS_FILE: not applied; the previous content stays in use');
    expect(service.process.stdout).not.toMatch(/MARKED|token-of-/);
    write(LINES.bob + LINES.carol);
    await expectValid(BOB, CAROL);
    await expect.poll(invalidFiles).toBe(0);
  });

  it('leaves no token valid while the file is empty', async () => {
    write('\n');
    await expectValid();
    expect(await invalidFiles()).toBe(0);
  });
});

describe('a file of ADMIN_TOKENS at the start', () => {
  afterEach(() => service?.terminate());

  it('may be empty, and is in use without a restart when it has tokens', async () => {
    write('\n');
    service = await start();
    await expectValid();
    write(LINES.alice);
    await expectValid(ALICE);
  });
});
