/**
 * Imports point down (docs/architecture.md). A folder imports lower levels only; folders of one level do not know each
 * other. The lowest first:
 */
const LEVELS = [
  ['platform', 'migrations'],
  ['audit'],
  ['oauth'],
  ['registry', 'access-token'],
  ['one-time-code', 'identity'],
  ['agent-auth'],
  ['transfer', 'token', 'accounts', 'purge', 'admin'],
  ['public/grant.ts'],
  ['grants', 'openapi'],
  [
    'app.module.ts',
    'extension.ts',
    'bootstrap.ts',
    'welcome.ts',
    'run-service.ts',
    'cli',
    'public/service.ts',
    'main.ts',
    'cli.ts',
  ],
  ['testing', 'public/testing.ts'],
];
/** The two levels at the top are one house each: their parts may know each other. */
const HOUSES = LEVELS.slice(-2);
/** What runs in tests alone, and the development packages that it may want there (optional peers in package.json). */
const TESTING = path(LEVELS.at(-1));
const TEST_PACKAGES = '(^|/)node_modules/(vitest|ajv|ajv-formats)/';

function path(names) {
  return `^src/(${names.map((name) => name.replaceAll('.', '\\.')).join('|')})(/|$)`;
}

const levelRules = LEVELS.slice(0, -1).flatMap((folders, level) => [
  {
    name: `level-${level}-points-down`,
    severity: 'error',
    from: { path: path(folders) },
    to: { path: path(LEVELS.slice(level + 1).flat()) },
  },
  ...(HOUSES.includes(folders) ? [] : folders).map((folder) => ({
    name: `${folder}-does-not-know-its-neighbours`,
    severity: 'error',
    from: { path: path([folder]) },
    to: {
      path: path(
        folders.filter((other) => other !== folder && !(folder === 'platform' && other === 'migrations')).concat('-'),
      ),
    },
  })),
]);

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...levelRules,
    {
      name: 'every-folder-has-a-level',
      severity: 'error',
      from: {},
      to: { path: '^src/', pathNot: path(LEVELS.flat()) },
    },
    { name: 'a-grant-is-a-folder', severity: 'error', from: {}, to: { path: '^src/grants/[^/]+\\.ts$' } },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'grants-are-islands',
      severity: 'error',
      from: { path: '^src/grants/([^/]+)/' },
      to: { path: '^src/grants/', pathNot: '^src/grants/$1/' },
    },
    {
      name: 'a-grant-from-outside-the-specification-uses-the-public-surface',
      severity: 'error',
      from: { path: '^src/grants/jwt-bearer/' },
      to: { path: '^src/', pathNot: '^src/(grants/jwt-bearer/|public/grant\\.ts$)' },
    },
    {
      name: 'service-does-not-know-its-tests',
      severity: 'error',
      from: { path: '^src' },
      to: { path: '^(test|bench|scripts)' },
    },
    {
      name: 'no-development-packages-in-the-service',
      severity: 'error',
      from: { path: '^src', pathNot: TESTING },
      to: { dependencyTypes: ['npm-dev', 'npm-peer', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'few-development-packages-in-the-testing-kit',
      severity: 'error',
      from: { path: TESTING },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], pathNot: TEST_PACKAGES },
    },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
    },
  },
};
