/**
 * A folder imports folders of lower levels only, and none of its own level (docs/architecture.md). The lowest level is the
 * first.
 */
const LEVELS = [
  ['platform', 'migrations'],
  ['oauth', 'audit'],
  ['operator', 'registry', 'access-token'],
  ['bearer'],
  ['routes'],
  ['identity', 'one-time-code'],
  ['organization-user', 'refresh-token'],
  ['agent-auth', 'token', 'transfer', 'introspection', 'well-known', 'purge', 'admin'],
  ['grants', 'openapi', 'try-it'],
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
/** The files of each of the two levels at the top may import each other. */
const MIXED_LEVELS = LEVELS.slice(-2);
/** The names that grants of other packages may import. The file re-exports from levels 0 to 7. */
const GRANT_API = '^src/public/grant\\.ts$';
const GRANTS_LEVEL = LEVELS.findIndex((folders) => folders.includes('grants'));
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
  ...(MIXED_LEVELS.includes(folders) ? [] : folders).map((folder) => ({
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
      name: 'the-grant-api-points-down',
      severity: 'error',
      from: { path: GRANT_API },
      to: { path: path(LEVELS.slice(GRANTS_LEVEL).flat()) },
    },
    {
      name: 'the-grant-api-is-for-grants',
      severity: 'error',
      from: { path: '^src/', pathNot: path(LEVELS.slice(GRANTS_LEVEL).flat()) },
      to: { path: GRANT_API },
    },
    {
      name: 'every-folder-has-a-level',
      severity: 'error',
      from: {},
      to: { path: '^src/', pathNot: [path(LEVELS.flat()), GRANT_API] },
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
      name: 'a-grant-of-an-extension-uses-the-public-surface',
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
    {
      name: 'token-verifier-does-not-know-the-service',
      severity: 'error',
      from: { path: '^packages/' },
      to: { path: '^(src|test|bench|scripts)/' },
    },
    {
      name: 'token-verifier-depends-on-jose-only',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/' },
      to: { path: 'node_modules/', pathNot: 'node_modules/jose/' },
    },
    {
      name: 'service-does-not-know-the-packages',
      severity: 'error',
      from: { path: '^src/' },
      to: { path: '^packages/' },
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
