import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { IS_NIGHTLY } from '../../nightly.js';
import { exampleManifest, manifestOf, PackedService } from '../../support/packed-example.js';
import { read } from '../../support/project-files.js';

/** Long enough for the compiler, the conformance kit and a process. */
const SLOW = { timeout: 300_000 };
const PROGRAM = '../node_modules/@customer-authorization/service/scripts/bin.js';
const URI = 'urn:acme:one-time-link';
/** Names of the service's own routes: a generated route with one of them would have the same path. */
const ROUTES = new Set(
  Array.from(read('docs/protocol.md').matchAll(/(?:GET|POST) \/v2\/customer\/(\w+)/g), ([, name = '']) =>
    name.replaceAll('_', ' '),
  ),
);

/**
 * One package of each template. In the nightly checks, twenty with random names and options, five of them on MariaDB.
 */
const PACKAGES = IS_NIGHTLY
  ? Array.from({ length: 20 }, (_, index) => randomPackage(index))
  : [
      ['sso assertion'],
      ['mail phone code', '--message', 'email', '--grant-type', 'urn:acme:mail'],
      ['visit', '--agent'],
    ];

/** The options of a template in turn, and a random name of words that the templates or their languages use. */
function randomPackage(index: number): string[] {
  const words = 'code phone email agent link pass test index class default new kit rule x1 4all token customer'.split(
    ' ',
  );
  const word = () => words[randomInt(words.length)] as string;
  const name = [['acme', 'my', 'q'][randomInt(3)], ...Array.from({ length: randomInt(3) }, word), `n${index}`].join(
    ' ',
  );
  const options = [[], ['--message', 'phone'], ['--message', 'email'], ['--agent']][index % 4] as string[];
  return [name, ...options, ...(randomInt(3) === 0 ? ['--grant-type', `urn:acme:${name.replaceAll(' ', ':')}`] : [])];
}

/** What the generator replaces. A README may name the boarding pass of an airline. */
const NAMES_OF_EXAMPLES = /boarding[-_]?pass|phone[-_ ]?code|agent[-_ ]?link|\0/i;

/** The files of a package, with their texts. */
function textsIn(folder: string): [path: string, text: string][] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .map((path) => [path, readFileSync(join(folder, path), 'utf8')]);
}

describe('the program new-package of the packed service', SLOW, () => {
  let service: PackedService;
  beforeAll(async () => {
    service = await PackedService.install();
    mkdirSync(join(service.folder, 'teams'));
  }, SLOW.timeout);
  afterAll(() => service?.remove());

  const newPackage = (...parameters: string[]) => service.runIn('teams', [PROGRAM, 'new-package', ...parameters]);
  /**
   * Compiles, lints and tests a package, with few random requests, on SQLite or on the database server of the tests.
   */
  const test = (name: string, isOnServer: boolean) => {
    const { TEST_DATABASE_URL } = process.env;
    const more = { FUZZ_REQUESTS: '20', ...(isOnServer && { TEST_DATABASE_URL }) };
    return service.npm(['test'], `teams/${name}`, more);
  };
  const written = () => readdirSync(join(service.folder, 'teams'), { recursive: true });

  it('writes a package with its names and the URI of its grant type', async () => {
    const folder = 'one-time-link';
    const { exitCode, output } = await newPackage('one time link', '--grant-type', URI);
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: expect.stringContaining(`cd ${folder}\n`) });
    const paths = Array.from(output.matchAll(/^ {2}(\S+\/\S+)$/gm), ([, path = '']) => path);
    expect(paths.length).toBeGreaterThan(5);
    for (const path of paths) expect(existsSync(join(service.folder, 'teams', path))).toBe(true);
    const source = readFileSync(join(service.folder, 'teams', folder, 'src/index.ts'), 'utf8');
    expect(source).toContain(`'${URI}'`);
    expect(source).toContain('export class OneTimeLinkGrant ');
    expect(manifestOf(join(service.folder, 'teams', folder))).toMatchObject({ name: folder, version: '0.1.0' });
  });

  it.each(PACKAGES.map((parameters, index) => ({ parameters, command: parameters.join(' '), index })))(
    'writes for $command a package whose tests pass without a change',
    async ({ parameters, index }) => {
      const [name = ''] = parameters;
      const folder = name.replaceAll(' ', '-');
      expect(await newPackage(...parameters)).toMatchObject({ exitCode: 0 });
      const texts = textsIn(join(service.folder, 'teams', folder)).map((entry) => entry.join('\n'));
      if (!NAMES_OF_EXAMPLES.test(name)) for (const text of texts) expect(text).not.toMatch(NAMES_OF_EXAMPLES);
      const { exitCode, output } = await test(folder, IS_NIGHTLY && index < 5);
      expect(output).not.toMatch(/skipped|no tests/i);
      expect(exitCode, output).toBe(0);
      expect(output).toMatch(/Tests .*[2-9]\d passed/);
      rmSync(join(service.folder, 'teams', folder), { recursive: true });
    },
  );

  it('explains its options with --help', async () => {
    expect(await newPackage('--help')).toEqual({
      exitCode: 0,
      output: expect.stringMatching(/^usage: .*--message.*--agent.*--grant-type/s),
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
    [['public'], /^"public" would give a class or parameter a name that the service uses; /],
    [['client id'], /^"client id" would give a class or parameter a name that the service uses; /],
    [['taken'], /^taken exists already; /],
    [['x', '--grant-type', "a'b"], /^"a'b" is no URI for a grant type/],
    [['x', '--agent', '--message', 'phone'], /^usage: /],
    [['x', '--message', 'fax'], /^usage: /],
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
    const { exitCode, output } = await newPackage(name, '--agent');
    expect({ exitCode, output }).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining(`"${name}" is a route of the service; `),
    });
    expect(written()).toEqual(before);
  });
});
