import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { TEST_FILES } from './test/test-files.js';

/** `npm test` and `npm run test:processes` start a MariaDB and name it in TEST_DATABASE_URL. */
const hasMariadb = Boolean(process.env.TEST_DATABASE_URL);

/** The browser tests run in each browser; `npm test` finds the programs and names them in these variables. */
const { TEST_CHROMIUM, TEST_FIREFOX } = process.env;
const browsers = [...(TEST_CHROMIUM ? ['chromium'] : []), ...(TEST_FIREFOX ? ['firefox'] : [])];

/** What the variables of examples/phone-code name in its own vitest.config.ts. */
const KEY_FILE = 'examples/phone-code/test/key-of-the-tests';
const FILES_OF_EXAMPLES = {
  PHONE_CODE_GATEWAY_KEY_FILE: KEY_FILE,
  PHONE_CODE_CUSTOMER_KEY_FILE: KEY_FILE,
};

/** How often each test runs, for tests of races. */
const { TEST_REPEATS } = process.env;

/** Rounds of each race on a cluster. */
const { RACE_ROUNDS = '4' } = process.env;

/** `npm run test:cluster` names the kind of cluster. Only Galera's nodes can be cut off and frozen. */
const { TEST_CLUSTER } = process.env;
const CLUSTER_TESTS: Record<string, string[]> = {
  galera: ['*'],
  'group-replication': ['codes', 'database-accounts', 'endings', 'external-ids', 'feeds', 'identities', 'races'],
};

/** Imports by the name of a package. */
const PACKAGES = {
  '@customer-authorization/service': 'dist/public/service.js',
  '@customer-authorization/service/grant': 'dist/public/grant.js',
  '@customer-authorization/service/testing-host': 'dist/public/testing-host.js',
  '@customer-authorization/conformance-kit': 'packages/conformance-kit/src/index.ts',
  '@customer-authorization/browser-client': 'packages/browser-client/src/index.ts',
  '@customer-authorization/token-verifier': 'packages/token-verifier/src/index.ts',
  '@customer-authorization/token-verifier/express': 'packages/token-verifier/src/express.ts',
  '@customer-authorization/token-verifier/nestjs': 'packages/token-verifier/src/nestjs.ts',
  '@customer-authorization/try-it': 'packages/try-it/src/index.ts',
};
const alias = Object.entries(PACKAGES).map(([name, path]) => ({
  find: new RegExp(`^${name}$`),
  replacement: join(import.meta.dirname, path),
}));

/** Whether the project runs without a MariaDB, or there is one. */
function isPossible(project: string): boolean {
  return hasMariadb || !project.endsWith('mariadb');
}

function databaseOf(project: string): string {
  return project.endsWith('mariadb') ? 'mariadb' : 'sqlite';
}

function isIsolated(project: string): boolean {
  return project.startsWith('isolated');
}

const SOURCES = join(import.meta.dirname, 'src/');
const BUILT = join(import.meta.dirname, 'dist/');

/** Leads imports of the sources to the built service, which Node loads in a third of the time. */
const builtService = {
  name: 'built-service',
  enforce: 'pre' as const,
  resolveId(specifier: string, importer: string | undefined) {
    if (!specifier.startsWith('.') || !importer) return undefined;
    const path = join(dirname(importer), specifier);
    return path.startsWith(SOURCES) ? { id: path.replace(SOURCES, BUILT), external: true } : undefined;
  },
};

export default defineConfig({
  plugins: [builtService],
  resolve: { alias },
  test: {
    globalSetup: 'test/support/build-service.ts',
    ...(TEST_REPEATS && { runner: 'test/support/repeating-runner.ts' }),
    server: { deps: { external: [/\/dist\//] } },
    testTimeout: 300_000, // with other work, a machine can be many times slower
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
    maxWorkers: 2 * availableParallelism(), // a worker waits for its sockets half of the time
    projects: [
      ...(['unit', 'sqlite', 'mariadb', 'isolated', 'isolated-mariadb'] as const).filter(isPossible).map((name) => ({
        extends: true as const,
        test: {
          name,
          ...TEST_FILES[name],
          env: {
            TEST_DATABASE: databaseOf(name),
            TEST_SHARES_MODULES: isIsolated(name) ? '' : 'true',
            ...(isIsolated(name) && FILES_OF_EXAMPLES),
            ...((isIsolated(name) || name === 'unit') && { TEST_STATEMENTS_FILE: '' }), // statements of the tests' own
          },
          isolate: isIsolated(name),
          setupFiles: ['test/support/setup.ts'],
        },
      })),
      ...(['processes', 'processes-mariadb'] as const).filter(isPossible).map((name) => ({
        extends: true as const,
        test: {
          name,
          ...TEST_FILES[name],
          env: { TEST_DATABASE: databaseOf(name) },
          setupFiles: ['reflect-metadata'], // for files that import classes with decorators, and nothing of Nest
        },
      })),
      ...(process.env.TEST_FAULTS
        ? [
            {
              extends: true as const,
              test: {
                name: 'faults',
                include: ['test/faults/**/*.spec.ts'],
                fileParallelism: false, // two cores make enough trouble for one database at a time
              },
            },
          ]
        : []),
      ...browsers.flatMap((browser) =>
        [browser, `isolated-${browser}`].map((name) => ({
          extends: true as const,
          test: {
            name,
            ...TEST_FILES[isIsolated(name) ? 'isolated-browser' : 'browser'],
            env: {
              TEST_DATABASE: 'sqlite',
              TEST_BROWSER: browser,
              TEST_SHARES_MODULES: isIsolated(name) ? '' : 'true',
              TEST_STATEMENTS_FILE: '', // other tests send the same statements
            },
            isolate: isIsolated(name),
            setupFiles: ['test/support/setup.ts'],
          },
        })),
      ),
      ...(TEST_CLUSTER
        ? [
            {
              extends: true as const,
              test: {
                name: TEST_CLUSTER,
                include: CLUSTER_TESTS[TEST_CLUSTER]?.map((name) => `test/cluster/${name}.spec.ts`) ?? [],
                globalSetup: 'test/cluster/servers/global-setup.ts',
                env: { RACE_ROUNDS },
              },
            },
          ]
        : []),
    ],
  },
});
