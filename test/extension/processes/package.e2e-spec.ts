import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TOKEN } from '../../support/cookie-grant.js';
import { emptyDatabaseOfTest } from '../../support/databases.js';
import {
  kitManifest,
  manifestOf,
  PackedService,
  type ProcessResult,
  serviceManifest,
  tarballOf,
} from '../../support/packed-example.js';
import { environmentOf, PORTS, runCli, startServiceProcess, TestProcess } from '../../support/processes.js';
import { PROJECT, read } from '../../support/project-files.js';
import { httpClientOf } from '../../support/test-service.js';

const SLOW = { timeout: 300_000 };
const TSC = 'node_modules/typescript/bin/tsc';
const DEEP = ['dist/bootstrap.js', 'dist/public/grant.js', 'bootstrap', 'package.json'].map(
  (path) => `${serviceManifest.name}/${path}`,
);
/** The examples that the generator copies. */
const TEMPLATES = ['agent-link', 'boarding-pass', 'phone-code'];

describe('the packed package, installed next to another team’s package (examples/boarding-pass)', SLOW, () => {
  let example: PackedService;
  beforeAll(async () => {
    example = await PackedService.install('boarding-pass');
    expect(await example.run(TSC, '-p', 'tsconfig.build.json')).toEqual({ exitCode: 0, output: '' });
  }, 180_000);
  afterAll(() => example?.remove());

  /** Compiles one more source file in the other team’s package. */
  async function compiled(text: string): Promise<ProcessResult> {
    const probe = join(example.folder, 'src/probe.ts');
    writeFileSync(probe, text);
    const ran = await example.run(TSC, '-p', 'tsconfig.json');
    rmSync(probe);
    return ran;
  }

  it('contains the built service, its declarations and views, and the pages for builders and operators', () => {
    const [built, otherFiles] = [true, false].map((isBuilt) =>
      example.files.filter((path) => !path.startsWith('scripts/') && path.startsWith('dist/') === isBuilt),
    );
    expect(example.files.filter((path) => /try-it|demo-/.test(path))).toEqual([]);
    const kinds = new Set(built?.map((path) => /(\.d)?\.\w+$/.exec(path)?.[0]));
    expect([...kinds].sort()).toEqual(['.css', '.d.ts', '.eta', '.js']);
    expect(otherFiles?.filter((path) => !path.startsWith('examples/')).sort()).toEqual(
      [
        '.env.example',
        'LICENSE',
        'README.md',
        'docs/adding-a-grant.md',
        'docs/api/conformance-kit.api.md',
        'docs/api/grant.api.md',
        'docs/api/service.api.md',
        'docs/configuration.md',
        'docs/observability.md',
        'docs/operations.md',
        'package.json',
      ].sort(),
    );
    const examples = otherFiles?.filter((path) => path.startsWith('examples/')).map((path) => path.split('/')) ?? [];
    expect([...new Set(examples.map(([, name]) => name))].sort()).toEqual(TEMPLATES);
    expect([...new Set(examples.map(([, , part = '']) => part))].sort()).toEqual(
      ['Dockerfile', 'README.md', 'issuer.js', 'lint.json', 'package.json', 'registry.yaml', 'src', 'test']
        .concat(['tsconfig.build.json', 'tsconfig.json', 'vitest.config.ts'])
        .sort(),
    );
  });

  it('has declarations that compile with only the packages that it depends on', async () => {
    expect(await example.run(TSC, '-p', 'tsconfig.json', '--skipLibCheck', 'false')).toEqual({
      exitCode: 0,
      output: '',
    });
  });

  it('runs with `npm start` of the other package, and gives tokens for the grants of both packages', async () => {
    const database = await emptyDatabaseOfTest();
    const { output: proof } = await example.run('issuer.js');
    const more = { ...environmentOf(database), ...PORTS, MIGRATE_ON_START: 'true', REGISTRY_FILE: 'registry.yaml' };
    const environment = { PATH: process.env.PATH, HOME: process.env.HOME, ...more };
    const key = join(database.folder, 'customer-key');
    writeFileSync(key, 'a-key-of-the-test-with-32-characters-or-more');
    const service = TestProcess.spawn(
      'npm',
      ['start'],
      { ...environment, BOARDING_PASS_CUSTOMER_KEY_FILE: key },
      example.folder,
    );
    const [, port] = await service.says(/port (\d+) for callers/);
    const { post } = httpClientOf(`http://127.0.0.1:${port}`);
    const [, request = ''] = /-d '(\{.*\})'/.exec(read('examples/boarding-pass/README.md')) ?? [];
    const body = JSON.parse(request.replace("'$(cat proof)'", proof.trim()));
    const tokens = [await post(TOKEN, body), await post(TOKEN, body)];
    expect(tokens.map(({ status }) => status)).toEqual([200, 200]);
    expect(tokens[1]?.body.entity_id).toBe(tokens[0]?.body.entity_id);
    const cookie = { ...body, grant_type: 'cookie', response_type: 'token' };
    expect((await post(TOKEN, cookie)).status).toBe(200);
    service.signal('SIGTERM');
    expect(await service.ended).toMatchObject({ stderr: '' });
  });

  it('finds with the linter of the other package a call of the service that is not awaited', async () => {
    const path = join(example.folder, 'src/index.ts');
    const source = readFileSync(path, 'utf8');
    const call = 'this.uses.count(';
    expect(source).toContain(`await ${call}`);
    expect(await example.npm(['run', 'check'])).toMatchObject({ exitCode: 0 });
    writeFileSync(path, source.replace(`await ${call}`, call));
    const { exitCode, output } = await example.npm(['run', 'check']);
    writeFileSync(path, source);
    expect({ exitCode, output }).toEqual({ exitCode: 1, output: expect.stringContaining('noFloatingPromises') });
  });

  it.each(DEEP)('does not let Node import %s', async (specifier) => {
    const { exitCode, output } = await example.run('--input-type=module', '--eval', `await import('${specifier}')`);
    expect({ exitCode, output }).toEqual({
      exitCode: 1,
      output: expect.stringContaining('ERR_PACKAGE_PATH_NOT_EXPORTED'),
    });
  });

  it('does not let the compiler import any other file', async () => {
    const imports = DEEP.map((specifier, i) => `import '${specifier}';\nimport * as all${i} from '${specifier}';\n`);
    const { exitCode, output } = await compiled(`${imports.join('')}${DEEP.map((_, i) => `all${i};\n`).join('')}`);
    expect(exitCode).not.toBe(0);
    for (const specifier of DEEP) expect(output).toContain(`Cannot find module '${specifier}'`);
  });
});

describe('the example with a table of its own (examples/device-approval)', SLOW, () => {
  let example: PackedService;
  beforeAll(async () => {
    example = await PackedService.install('device-approval');
    expect(await example.run(TSC, '-p', 'tsconfig.build.json')).toEqual({ exitCode: 0, output: '' });
  }, 180_000);
  afterAll(() => example?.remove());

  it('passes its own tests', async () => {
    const tests = await example.run('node_modules/vitest/vitest.mjs', 'run');
    expect(tests).toMatchObject({ exitCode: 0, output: expect.stringMatching(/Tests .*([5-9]\d|\d{3}) passed/) });
  });

  it('waits for its migrations, which the commands of a service without it do not know', async () => {
    const environment = { ...environmentOf(await emptyDatabaseOfTest()), MIGRATE_ON_START: 'false' };
    const withExtension = { ...environment, EXTENSION: example.built('index.js') };
    expect(await runCli(['migrate'], environment)).toMatchObject({ code: 0 });
    const starting = startServiceProcess(withExtension, example.folder, example.program('main.js'));
    const cli = (...parameters: string[]) =>
      TestProcess.start(example.program('cli.js'), parameters, withExtension).ended;
    expect(await cli('migrate', '--check')).toMatchObject({ code: 1, stdout: 'migrations are pending\n' });
    expect(await cli('migrate')).toMatchObject({ code: 0, stdout: 'migrated: DeviceApprovals1795500000000\n' });
    const service = await starting;
    expect(service.process.stdout).toContain('migrations are pending');
    expect(await service.terminate()).toBe(0);
    expect(await runCli(['migrate', '--check'], environment)).toMatchObject({ code: 0, stdout: 'up to date\n' });
  });
});

it.each([...TEMPLATES, 'device-approval'])(
  'examples/%s requires the same versions as the service, so that a process loads each package once',
  (name) => {
    const versions = {
      ...serviceManifest.devDependencies,
      ...serviceManifest.dependencies,
      [serviceManifest.name]: serviceManifest.version,
      [kitManifest.name]: kitManifest.version,
    };
    const { dependencies, devDependencies, overrides } = manifestOf(join(PROJECT, 'examples', name));
    expect(versions).toMatchObject({ ...dependencies, ...devDependencies });
    expect(serviceManifest.overrides).toMatchObject(overrides);
  },
);

it('the conformance kit has the version of the service, and requires this service with its NestJS and TypeORM', () => {
  const { version, peerDependencies, dependencies } = kitManifest;
  const { vitest: _vitest, [serviceManifest.name]: service, ...peers } = peerDependencies;
  expect([version, service]).toEqual([serviceManifest.version, serviceManifest.version]);
  expect({ ...serviceManifest.devDependencies, ...serviceManifest.dependencies }).toMatchObject({
    ...dependencies,
    ...peers,
  });
  const readme = read('packages/conformance-kit/README.md');
  for (const manifest of [serviceManifest, kitManifest]) expect(readme).toContain(`./${tarballOf(manifest)}`);
});
