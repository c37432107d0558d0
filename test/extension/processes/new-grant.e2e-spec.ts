import { cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from '../../support/processes.js';
import { PROJECT, read, temporaryFolder } from '../../support/project-files.js';

/** Files that a fresh clone does not have, and node_modules, which is linked instead. */
const NOT_COPIED = new Set(['node_modules', '.git', 'dist', 'var', '.env']);
/** Long enough for the checks and for 200 fuzzed requests to each grant. */
const SLOW = { timeout: 300_000 };

describe('npm run new:grant', SLOW, () => {
  const project = temporaryFolder('new-grant');
  beforeAll(() => {
    cpSync(PROJECT, project, {
      recursive: true,
      filter: (path) => path === PROJECT || !NOT_COPIED.has(basename(path)),
    });
    symlinkSync(join(PROJECT, 'node_modules'), join(project, 'node_modules'));
  });

  const run = (program: string, ...parameters: string[]) => runProgram(program, parameters, { cwd: project });
  const newGrant = (...parameters: string[]) => run('node', 'scripts/new-grant.js', ...parameters);
  const pathsIn = (output: string) => [...output.matchAll(/^ {2}(\S+\.ts)$/gm)].map(([, path = '']) => path);
  const writtenPaths: string[] = [];
  const application = () => readFileSync(join(project, 'src/app.module.ts'), 'utf8');

  it.each([
    ['../sms', 'no name for a grant'],
    ['cookie', 'is a grant of the service'],
    ['', 'usage: npm run new:grant -- NAME'],
  ])('rejects the name %j and writes nothing', async (name, message) => {
    const before = application();
    const { code, stdout, stderr } = await newGrant(...(name ? [name] : []));
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(message);
    expect(application()).toBe(before);
    expect(existsSync(join(project, `test/grants/both-databases/${name}-grant.e2e-spec.ts`))).toBe(false);
  });

  it('writes nothing with --message, which is a template of a package', async () => {
    const before = application();
    const { code, stderr } = await newGrant('mail code', '--message');
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^--message writes a package; /) });
    expect(application()).toBe(before);
  });

  it('explains its options with --help', async () => {
    const { code, stdout } = await newGrant('--help');
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^usage: .*--route.*--agent.*--polling.*--help/s),
    });
  });

  it('writes a grant, its test and its line in the application module, and prints the next steps', async () => {
    const before = application().split('\n');
    const { code, stdout, stderr } = await newGrant('sms code');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const added = application()
      .split('\n')
      .filter((line) => !before.includes(line));
    expect(added).toEqual([
      "import { SmsCodeGrantModule } from './grants/sms-code/sms-code-grant.module.js';",
      '    SmsCodeGrantModule,',
    ]);
    for (const path of pathsIn(stdout)) expect(existsSync(join(project, path))).toBe(true);
    writtenPaths.push(...pathsIn(stdout));
    expect(stdout).toContain('npm test -- test/grants/both-databases/sms-code-grant.e2e-spec.ts');
    const page = read('docs/adding-a-grant.md');
    expect(page).toContain(`\`\`\`text npm run new:grant\n${stdout}\`\`\`\n`);
    expect((await newGrant('sms-code')).stderr).toContain('src/grants/sms-code exists already');
  });

  it('writes a grant with a route and a table, and adds its module and its migration', async () => {
    const { code, stdout, stderr } = await newGrant('magic link', '--route');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(application()).toContain('    MagicLinkGrantModule,\n');
    expect(readFileSync(join(project, 'src/migrations/migrations.ts'), 'utf8')).toMatch(
      /\n {2}MagicLinkCodes\d{13},\n\];/,
    );
    for (const path of pathsIn(stdout)) expect(existsSync(join(project, path))).toBe(true);
    writtenPaths.push(...pathsIn(stdout));
  });

  it.each([
    ['agent link', '--agent', 'AgentLink'],
    ['mail confirmation', '--polling', 'MailConfirmation'],
  ])('writes the grant %s with %s', async (name, option, className) => {
    const { code, stdout, stderr } = await newGrant(name, option);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(application()).toContain(`    ${className}GrantModule,\n`);
    writtenPaths.push(...pathsIn(stdout));
  });

  it('writes grants that pass the checks of source files in npm run check', async () => {
    expect(writtenPaths.length).toBeGreaterThan(10);
    const checks = ['types', 'style', 'imports', 'unused', 'environment', 'units'].map((name) => [name]);
    for (const [name, ...paths] of [...checks, ['spelling', '--', ...writtenPaths]]) {
      const { code, stdout, stderr } = await run('npm', 'run', `check:${name}`, ...paths);
      expect(code, `check:${name} printed:\n${stdout}${stderr}`).toBe(0);
    }
  });

  it('writes grants that pass their own tests, with every rule of the conformance kit', async () => {
    const names = ['magic-link', 'agent-link', 'mail-confirmation'];
    const files = ['sms-code-grant', ...names.flatMap((name) => [`${name}-grant`, `${name}-route`])];
    const tests = [
      'run',
      '--project',
      'sqlite',
      ...files.map((name) => `test/grants/both-databases/${name}.e2e-spec.ts`),
    ];
    const { code, stdout } = await run('node', 'node_modules/vitest/vitest.mjs', ...tests);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/Tests .*\d{3} passed/) });
  });

  it('writes grants and a route with texts and examples for the OpenAPI document', async () => {
    const parameters = ['run', '--project', 'sqlite', 'test/http/openapi-texts.e2e-spec.ts'];
    const { code, stdout } = await run('node', 'node_modules/vitest/vitest.mjs', ...parameters);
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/Tests .*\d+ passed/) });
  });
});
