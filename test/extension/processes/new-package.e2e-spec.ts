import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exampleManifest, manifestOf, PackedService, type ProcessResult } from '../../support/packed-example.js';
import { read } from '../../support/project-files.js';

/** Long enough for the compiler, the conformance kit and a process. */
const SLOW = { timeout: 300_000 };
const PROGRAM = '../node_modules/customer-authorization-service/scripts/new-package.js';
const URI = 'urn:acme:one-time-link';
/** Names of the service's own routes: a generated route with one of them would have the same path. */
const ROUTES = new Set(
  Array.from(read('docs/protocol.md').matchAll(/(?:GET|POST) \/v2\/customer\/(\w+)/g), ([, name = '']) =>
    name.replaceAll('_', ' '),
  ),
);

describe('the program new-package of the packed service', SLOW, () => {
  let service: PackedService;
  beforeAll(async () => {
    service = await PackedService.install();
    mkdirSync(join(service.folder, 'teams'));
  }, SLOW.timeout);
  afterAll(() => service?.remove());

  const newPackage = (...parameters: string[]) => service.runIn('teams', [PROGRAM, 'new-package', ...parameters]);
  const runIn = (name: string, script: string, ...parameters: string[]): Promise<ProcessResult> =>
    service.runIn(`teams/${name}`, [join(service.folder, 'node_modules', script), ...parameters], {
      FUZZ_REQUESTS: '20',
    });
  const written = () => readdirSync(join(service.folder, 'teams'), { recursive: true });

  it('writes a package that compiles, with its names and the URI of its grant type', async () => {
    const folder = 'one-time-link';
    const { exitCode, output } = await newPackage('one time link', '--grant-type', URI);
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: expect.stringContaining(`cd ${folder}\n`) });
    for (const [, path = ''] of output.matchAll(/^ {2}(\S+\/\S+)$/gm))
      expect(existsSync(join(service.folder, 'teams', path))).toBe(true);
    const source = readFileSync(join(service.folder, 'teams', folder, `src/${folder}.grant.ts`), 'utf8');
    expect(source).toContain(`'${URI}'`);
    expect(source).toContain('export class OneTimeLinkGrant ');
    expect(await runIn(folder, 'typescript/bin/tsc', '-p', 'tsconfig.json')).toEqual({ exitCode: 0, output: '' });
  });

  it.each([
    [['sms'], 'sms'],
    [['magic link code', '--route'], 'magic-link-code'],
    [['agent link', '--agent'], 'agent-link'],
    [['mail code', '--message'], 'mail-code'],
  ])('writes for %j a package that can be built and whose tests pass without a change', async (parameters, folder) => {
    expect(await newPackage(...parameters)).toMatchObject({ exitCode: 0 });
    const build = await runIn(folder, 'typescript/bin/tsc', '-p', 'tsconfig.build.json');
    expect(build).toEqual({ exitCode: 0, output: '' });
    const tests = await runIn(folder, 'vitest/vitest.mjs', 'run');
    expect(tests.output).not.toMatch(/skipped|no tests/i);
    expect(tests).toMatchObject({ exitCode: 0, output: expect.stringMatching(/Tests .*[3-9]\d passed/) });
  });

  it('explains its options with --help', async () => {
    expect(await newPackage('--help')).toEqual({
      exitCode: 0,
      output: expect.stringMatching(/^usage: .*--route.*--agent.*--message.*--grant-type/s),
    });
  });

  it('requires the versions that the example requires', async () => {
    await newPackage('versions');
    const { dependencies, devDependencies, overrides } = manifestOf(join(service.folder, 'teams/versions'));
    const { dependencies: expected, devDependencies: expectedForTests, overrides: expectedOverrides } = exampleManifest;
    expect({ dependencies, devDependencies, overrides }).toEqual({
      dependencies: expected,
      devDependencies: expectedForTests,
      overrides: expectedOverrides,
    });
  });

  it.each([
    [[], /^usage: /],
    [[''], /^usage: /],
    [['one', 'two'], /^usage: /],
    [['../x'], /^"\.\.\/x" is no name for a grant: /],
    [['2fa'], /^"2fa" is no name for a grant: /],
    [['sms_code'], /^"sms_code" is no name for a grant: /],
    [['sms-'], /^"sms-" is no name for a grant: /],
    [['Magic Link'], /^"Magic Link" is no name for a grant: /],
    [['a  b'], /^"a {2}b" is no name for a grant: /],
    [['s'.repeat(41)], /is no name for a grant: /],
    [['password'], /^"password" has a meaning in RFC 6749; /],
    [['agent token'], /^"agent token" is a grant of the service; /],
    [['one time'], /^"one time" would give a class or table a name that the service uses; /],
    [['browser', '--message'], /^"browser" would give a class or table a name that the service uses; /],
    [['taken'], /^taken exists already; /],
    [['x', '--grant-type', "a'b"], /^"a'b" is no URI for a grant type/],
    [['x', '--agent', '--message'], /^usage: /],
    [['x', '--routes'], /^Unknown option '--routes'/],
  ])('writes nothing for %j, and says why in one line', async (parameters, message) => {
    mkdirSync(join(service.folder, 'teams/taken'), { recursive: true });
    const before = written();
    const { exitCode, output } = await newPackage(...parameters);
    expect({ exitCode, output }).toEqual({ exitCode: 1, output: expect.stringMatching(message) });
    expect(output.trim().split('\n')).toHaveLength(1);
    expect(written()).toEqual(before);
  });

  it('knows the names of the routes of the service', () => {
    expect([...ROUTES]).toEqual(expect.arrayContaining(['token', 'revoke', 'identity transfer']));
  });

  it.each([...ROUTES])('writes nothing for the name of a route of the service: %s', async (name) => {
    const before = written();
    const { exitCode, output } = await newPackage(name, '--route');
    expect({ exitCode, output }).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining(`"${name}" is a route of the service; `),
    });
    expect(written()).toEqual(before);
  });
});
