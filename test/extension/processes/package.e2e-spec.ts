import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { TOKEN } from '../../support/cookie-grant.js';
import { emptyDatabaseOfTest } from '../../support/databases.js';
import { lottoBody, registryWithDraw } from '../../support/lotto-registry.js';
import {
  exampleManifest,
  kitManifest,
  manifestOf,
  PackedService,
  type ProcessResult,
  serviceManifest,
} from '../../support/packed-example.js';
import { environmentOf, runCli, startServiceProcess, TestProcess } from '../../support/processes.js';
import { PROJECT, read } from '../../support/project-files.js';
import { writeRegistry } from '../../support/test-registry.js';
import { httpClientOf } from '../../support/test-service.js';

const SLOW = { timeout: 300_000 };
const TSC = 'node_modules/typescript/bin/tsc';
const DEEP = ['dist/bootstrap.js', 'dist/public/grant.js', 'bootstrap', 'package.json'].map(
  (path) => `${serviceManifest.name}/${path}`,
);

describe('the packed package, installed next to another team’s package (examples/lotto-grant)', SLOW, () => {
  let example: PackedService;
  beforeAll(async () => {
    example = await PackedService.install('lotto-grant');
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
    expect([...kinds].sort()).toEqual(['.css', '.d.ts', '.eta', '.html', '.js', '.txt']);
    expect(otherFiles?.sort()).toEqual(
      [
        '.env.example',
        'README.md',
        'docs/adding-a-grant.md',
        'docs/adding-a-route.md',
        'docs/api/conformance-kit.api.md',
        'docs/api/grant.api.md',
        'docs/api/service.api.md',
        'docs/configuration.md',
        'docs/grant-errors.md',
        'docs/observability.md',
        'docs/operations.md',
        'package.json',
      ].sort(),
    );
  });

  it('has declarations that compile with only the packages that it depends on', async () => {
    expect(await example.run(TSC, '-p', 'tsconfig.json', '--skipLibCheck', 'false')).toEqual({
      exitCode: 0,
      output: '',
    });
  });

  it('lets the other package pass its own tests, which run its commands and its service', async () => {
    const { exitCode, output } = await example.run('node_modules/vitest/vitest.mjs', 'run');
    expect(output).not.toMatch(/skipped|no tests/i);
    expect({ exitCode, output }).toMatchObject({ exitCode: 0 });
  });

  it('runs as a process of the other package, and gives tokens for the grants of both packages', async () => {
    const database = await emptyDatabaseOfTest();
    const REGISTRY_FILE = writeRegistry(join(database.folder, 'registry.yaml'), registryWithDraw());
    const environment = { ...environmentOf(database), MIGRATE_ON_START: 'true', REGISTRY_FILE };
    const service = await startServiceProcess(environment, example.folder, example.built('main.js'));
    const { post } = httpClientOf(service.url);
    const { status, body } = await post(TOKEN, lottoBody());
    expect({ status, body }).toMatchObject({ status: 200, body: { prize: 'a bicycle', token_type: 'Bearer' } });
    const cookie = { ...lottoBody(), grant_type: 'cookie', response_type: 'token' };
    expect((await post(TOKEN, cookie)).status).toBe(200);
    expect(await service.terminate()).toBe(0);
  });

  it('waits for the migrations of the other package, which its own commands do not know', async () => {
    const environment = { ...environmentOf(await emptyDatabaseOfTest()), MIGRATE_ON_START: 'false' };
    expect(await runCli(['migrate'], environment)).toMatchObject({ code: 0 });
    const starting = startServiceProcess(environment, example.folder, example.built('main.js'));
    const otherCli = (...parameters: string[]) =>
      TestProcess.start(example.built('cli.js'), parameters, environment).ended;
    expect(await otherCli('migrate', '--check')).toMatchObject({ code: 1, stdout: 'migrations are pending\n' });
    expect(await otherCli('migrate')).toMatchObject({ code: 0, stdout: 'migrated: LottoTickets1795300000000\n' });
    const service = await starting;
    expect(service.process.stdout).toContain('migrations are pending');
    expect(await service.terminate()).toBe(0);
    expect(await runCli(['migrate', '--check'], environment)).toMatchObject({ code: 0, stdout: 'up to date\n' });
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

it(
  'the example with routes (examples/device-approval) compiles, passes its own tests, and serves its pages',
  async () => {
    const example = await PackedService.install('device-approval');
    onTestFinished(() => example.remove());
    expect(await example.run(TSC, '-p', 'tsconfig.build.json')).toEqual({ exitCode: 0, output: '' });
    const tests = await example.run('node_modules/vitest/vitest.mjs', 'run');
    expect(tests).toMatchObject({ exitCode: 0, output: expect.stringMatching(/Tests .*([5-9]\d|\d{3}) passed/) });
    const environment = environmentOf(await emptyDatabaseOfTest());
    const service = await startServiceProcess(environment, example.folder, example.built('try-it.js'));
    const tryIt = await fetch(`${service.url}/try`);
    expect(await tryIt.text()).toContain('<a href="/try/device-approval">Approve a new device</a>');
    const page = await fetch(`${service.url}/try/device-approval`);
    expect({ status: page.status, text: await page.text() }).toMatchObject({
      status: 200,
      text: expect.stringContaining('<h1>A new device</h1>'),
    });
    expect(await service.terminate()).toBe(0);
  },
  SLOW.timeout,
);

it('the example requires the same versions as the service, so that a process loads each package once', () => {
  const versions = {
    ...serviceManifest.devDependencies,
    ...serviceManifest.dependencies,
    [serviceManifest.name]: serviceManifest.version,
    [kitManifest.name]: kitManifest.version,
  };
  for (const dependencies of [exampleManifest.dependencies, exampleManifest.devDependencies])
    expect(versions).toMatchObject(dependencies);
  expect(serviceManifest.overrides).toMatchObject(exampleManifest.overrides);
  const { qr: _qr, ...shared } = manifestOf(join(PROJECT, 'examples/device-approval')).dependencies;
  expect(versions).toMatchObject(shared);
});

it('the conformance kit has the version of the service, and requires this service with its NestJS and TypeORM', () => {
  const { version, peerDependencies, dependencies } = kitManifest;
  const { vitest: _vitest, [serviceManifest.name]: service, ...peers } = peerDependencies;
  expect([version, service]).toEqual([serviceManifest.version, serviceManifest.version]);
  expect({ ...serviceManifest.devDependencies, ...serviceManifest.dependencies }).toMatchObject({
    ...dependencies,
    ...peers,
  });
  const readme = read('packages/conformance-kit/README.md');
  for (const { name } of [serviceManifest, kitManifest]) expect(readme).toContain(`./${name}-${version}.tgz`);
});
