import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** The end-to-end tests run on each database; `npm test` starts the MariaDB and names it in TEST_DATABASE_URL. */
const databases = ['sqlite', ...(process.env.TEST_DATABASE_URL ? ['mariadb'] : [])];

/** End-to-end tests of rules that hold before the first statement, or in memory. They run on SQLite only. */
const WITHOUT_STATEMENTS = [
  'client-library',
  'conformance-kit',
  'conformance-kit-globals',
  'connections',
  'cors',
  'cross-site',
  'dashboards',
  'empty-parameters',
  'jwks',
  'jwt-bearer-keys',
  'keys',
  'no-install',
  'openapi',
  'password-length',
  'rate-limits',
  'registry-resource',
  'requests',
  'sign-in-cookies',
  'sign-in-floods',
  'sign-in-timing',
  'slow-callers',
];
const ONLY_ON_SQLITE = WITHOUT_STATEMENTS.map((name) => `test/e2e/${name}.e2e-spec.ts`);

/** `npm run test:cluster` names the kind of cluster. Only Galera's nodes can be cut off and frozen. */
const { TEST_CLUSTER } = process.env;
const CLUSTER_TESTS: Record<string, string[]> = {
  galera: ['*'],
  'group-replication': ['codes', 'identities', 'revocations'],
};

/** The example's own imports, from the sources and not from what was built last. */
const alias = Object.entries({ '': 'service', '/grant': 'grant', '/testing': 'testing' }).map(([subpath, file]) => ({
  find: new RegExp(`^customer-authorization-service${subpath}$`),
  replacement: join(import.meta.dirname, `src/public/${file}.ts`),
}));

export default defineConfig({
  resolve: { alias },
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/unit/**/*.spec.ts'], env: { TEST_DATABASE: 'sqlite' } } },
      ...databases.map((database) => ({
        extends: true as const,
        test: {
          name: database,
          include: ['test/e2e/**/*.e2e-spec.ts'],
          exclude: database === 'mariadb' ? ONLY_ON_SQLITE : [],
          env: { TEST_DATABASE: database },
        },
      })),
      ...(process.env.TEST_FAULTS
        ? [
            {
              extends: true as const,
              test: {
                name: 'faults',
                include: ['test/faults/**/*.spec.ts'],
                testTimeout: 180_000,
                fileParallelism: false, // two cores make enough trouble for one database at a time
              },
            },
          ]
        : []),
      ...(process.env.TEST_CHROMIUM
        ? [
            {
              extends: true as const,
              test: { name: 'browser', include: ['test/browser/**/*.spec.ts'], env: { TEST_DATABASE: 'sqlite' } },
            },
          ]
        : []),
      ...(TEST_CLUSTER
        ? [
            {
              extends: true as const,
              test: {
                name: TEST_CLUSTER,
                include: CLUSTER_TESTS[TEST_CLUSTER]?.map((name) => `test/cluster/${name}.spec.ts`) ?? [],
                globalSetup: 'test/cluster/servers/global-setup.ts',
                testTimeout: 300_000,
                hookTimeout: 120_000,
              },
            },
          ]
        : []),
    ],
  },
});
