import { IS_NIGHTLY } from './nightly.js';

/**
 * End-to-end tests whose rules depend on the SQL of the database: races, locks, unique keys, collations, times and
 * numbers in SQL, migrations, outages. `npm test` runs them on SQLite and on MariaDB, all other files on SQLite only.
 * `npm test` fails if a statement of the service ran on SQLite only (docs/testing.md).
 */
const ON_BOTH_DATABASES = [
  'admin-lists',
  'admin-timeout',
  'at-once',
  'bearer',
  'browser-links',
  'client-secrets',
  'conflicts',
  'consents',
  'customer-accounts',
  'customer-browsers',
  'customer-export',
  'customer-groups',
  'customer-refresh',
  'customer-refresh-purge',
  'database-dialects',
  'database-errors',
  'database-numbers',
  'database-outage',
  'deleted-client',
  'descents',
  'end-sessions',
  'end-sessions-browsers',
  'end-sessions-races',
  'erased-rows',
  'erasure-steps',
  'errors',
  'earlier-schema',
  'external-id',
  'feed-entries',
  'feed-lifetimes',
  'forget',
  'guide-token-store',
  'idle-customers',
  'idle-days',
  'jwt-bearer-links',
  'jwt-bearer-sign-ins',
  'jwt-bearer-users',
  'listeners',
  'managed-customers',
  'managed-erasures',
  'many-refresh-families',
  'metrics',
  'purge',
  'purge-generations',
  'races',
  'refresh-processes',
  'registry',
  'registry-deltas',
  'registry-file-races',
  'remember-browser',
  'remember-errors',
  'replays',
  'requests',
  'returning-customer',
  'revocation-feed',
  'revocation-feed-history',
  'revocation-feed-races',
  'revocation-limits',
  'revocations',
  'schema',
  'statement-texts',
  'superseded-registry',
  'token-descendants',
  'transactions',
];

/** End-to-end tests with entities that are not the service's. They do not share modules with other files. */
const ISOLATED = [
  'custom-grant',
  'faulty-grant',
  'faulty-table',
  'missing-table',
  'openapi',
  'openapi-texts',
  'registry-resource',
];

/** Those that also run on MariaDB. */
const ISOLATED_ON_BOTH_DATABASES = ['custom-grant', 'faulty-table', 'missing-table'];

/** End-to-end tests that start processes of the built service, npm or commands of the documents, on SQLite. */
const WITH_PROCESSES = [
  'commands-configuration',
  'connection-memory',
  'fuzz',
  'guide-nginx',
  'guide-python-api',
  'guide-python-backend',
  'guides',
  'keys',
  'logs',
  'new-grant',
  'new-package',
  'no-install',
  'operations-commands',
  'operator-token-files',
  'package',
  'process',
  'readme',
  'registry-apply-command',
  'request-path',
  'restore',
  'rolling-upgrade',
  'runbook',
  'runbook-commands',
  'token-explain',
  'tracing',
];

/** Unit tests that run compilers, npm, `kustomize`, `promtool` or processes. */
const UNIT_TESTS_WITH_PROCESSES = [
  'packages/token-verifier/test/readme.spec.ts',
  'packages/token-verifier/test/startup.spec.ts',
  'test/unit/alerts.spec.ts',
  'test/unit/check-advisories.spec.ts',
  'test/unit/kustomize.spec.ts',
  'test/unit/sqlite-file.spec.ts',
  'test/unit/tutorial.spec.ts',
];

/** Those that start processes with MariaDB. */
const WITH_PROCESSES_ON_MARIADB = [
  'database-accounts',
  'database-tls',
  'process',
  'revocation-feed-processes',
  'rolling-upgrade',
  'tracing',
];

/** Tests of an example package, whose entities are not the service's either. They run on both databases. */
const EXAMPLE = ['examples/device-approval/test/device-approval*.spec.ts'];

const paths = (names: string[]) => names.map((name) => `test/e2e/${name}.e2e-spec.ts`);

/** Tests of the conformance kit with such entities. */
const KIT_ISOLATED = ['grants', 'proofs'].map((name) => `packages/conformance-kit/test/${name}.e2e-spec.ts`);
const ALL_ISOLATED = [...paths(ISOLATED), ...KIT_ISOLATED];

/** Tests of the try-it page that start processes of `npm start`. */
const TRY_IT_WITH_PROCESSES = ['first-start', 'npm-start'].map((name) => `packages/try-it/test/${name}.e2e-spec.ts`);

const WITHOUT_PROCESSES = {
  include: ['test/e2e/**/*.e2e-spec.ts', 'packages/{conformance-kit,try-it}/test/*.e2e-spec.ts'],
  exclude: [...ALL_ISOLATED, ...TRY_IT_WITH_PROCESSES, ...paths([...WITH_PROCESSES, ...WITH_PROCESSES_ON_MARIADB])],
};

/** A browser test of the example package. */
const EXAMPLE_IN_BROWSER = ['test/browser/device-approval.spec.ts'];

/** The test files of each project of vitest. */
export const TEST_FILES = {
  unit: {
    include: ['test/unit/**/*.spec.ts', 'packages/*/test/**/*.spec.ts'],
    exclude: [...UNIT_TESTS_WITH_PROCESSES, 'packages/*/test/browser/**'],
  },
  sqlite: WITHOUT_PROCESSES,
  mariadb: IS_NIGHTLY ? WITHOUT_PROCESSES : { include: paths(ON_BOTH_DATABASES) },
  isolated: { include: [...ALL_ISOLATED, ...EXAMPLE] },
  'isolated-mariadb': { include: [...(IS_NIGHTLY ? ALL_ISOLATED : paths(ISOLATED_ON_BOTH_DATABASES)), ...EXAMPLE] },
  processes: { include: [...paths(WITH_PROCESSES), ...TRY_IT_WITH_PROCESSES, ...UNIT_TESTS_WITH_PROCESSES] },
  browser: { include: ['{test,packages/{browser-client,try-it}/test}/browser/*.spec.ts'], exclude: EXAMPLE_IN_BROWSER },
  'isolated-browser': { include: EXAMPLE_IN_BROWSER },
  'processes-mariadb': { include: paths(WITH_PROCESSES_ON_MARIADB) },
};
