import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../src/testing/test-database.js';

const PROJECT = join(import.meta.dirname, '../..');
/** Files that a fresh clone does not have, and node_modules, which is linked instead. */
const NOT_COPIED = new Set(['node_modules', '.git', 'dist', 'var', '.env']);
/** Long enough for the checks and for 2,000 fuzzed requests. */
const SLOW = { timeout: 300_000 };

describe.skipIf(onMariadb)('npm run new:grant', SLOW, () => {
  const project = mkdtempSync(join(tmpdir(), 'new-grant-'));
  beforeAll(() => {
    cpSync(PROJECT, project, {
      recursive: true,
      filter: (path) => path === PROJECT || !NOT_COPIED.has(basename(path)),
    });
    symlinkSync(join(PROJECT, 'node_modules'), join(project, 'node_modules'));
  });
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  function run(
    program: string,
    ...parameters: string[]
  ): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME };
    return new Promise((resolve) => {
      const child = execFile(program, parameters, { cwd: project, env, maxBuffer: 1 << 24 }, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode, stdout, stderr }),
      );
    });
  }
  const newGrant = (...parameters: string[]) => run('node', 'scripts/new-grant.js', ...parameters);
  const application = () => readFileSync(join(project, 'src/app.module.ts'), 'utf8');

  it.each([
    ['Sms', 'no name for a grant'],
    ['sms_code', 'no name for a grant'],
    ['../sms', 'no name for a grant'],
    ['2fa', 'no name for a grant'],
    ['sms-', 'no name for a grant'],
    ['s'.repeat(41), 'no name for a grant'],
    ['refresh-token', 'has a meaning in RFC 6749'],
    ['cookie', 'src/grants/cookie is there already'],
    ['', 'usage: npm run new:grant -- NAME'],
  ])('rejects the name %j and writes nothing', async (name, message) => {
    const before = application();
    const { code, stdout, stderr } = await newGrant(...(name ? [name] : []));
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
    expect(application()).toBe(before);
    expect(existsSync(join(project, `test/e2e/${name}-grant.e2e-spec.ts`))).toBe(name === 'cookie');
  });

  it('writes a grant, its test and its line in the application module, and prints the next steps', async () => {
    const before = application().split('\n');
    const { code, stdout, stderr } = await newGrant('sms-code');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const added = application()
      .split('\n')
      .filter((line) => !before.includes(line));
    expect(added).toEqual([
      "import { SmsCodeGrantModule } from './grants/sms-code/sms-code-grant.module.js';",
      '    SmsCodeGrantModule,',
    ]);
    for (const [, path] of stdout.matchAll(/^ {2}(\S+\.ts)$/gm))
      expect(existsSync(join(project, `${path}`))).toBe(true);
    expect(stdout).toContain('npm test -- test/e2e/sms-code-grant.e2e-spec.ts');
    const page = readFileSync(join(PROJECT, 'docs/adding-a-grant.md'), 'utf8');
    expect(page).toContain(`\`\`\`text npm run new:grant\n${stdout}\`\`\`\n`);
    expect((await newGrant('sms-code')).stderr).toContain('src/grants/sms-code is there already');
  });

  it('writes a grant that passes npm run check', async () => {
    expect(await run('npm', 'run', 'check')).toMatchObject({ code: 0 });
  });

  it('writes a grant that passes its own test, with every rule of the conformance kit', async () => {
    const tests = ['run', '--project', 'sqlite', 'test/e2e/sms-code-grant.e2e-spec.ts'];
    const { code, stdout } = await run('node', 'node_modules/vitest/vitest.mjs', ...tests);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/Tests .*[2-9]\d passed/) });
  });
});
