/**
 * Imports point down (docs/architecture.md). A folder imports lower levels only; folders of one level do not know each
 * other. The lowest first:
 */
const LEVELS = [
  ['platform', 'migrations'],
  ['oauth', 'audit'],
  ['registry', 'access-token'],
  ['one-time-code', 'identity'],
  ['agent-auth'],
  ['transfer', 'token', 'accounts', 'purge', 'admin'],
  ['public/grant.ts'],
  ['grants', 'openapi'],
  ['cli', 'app.module.ts', 'bootstrap.ts', 'main.ts', 'cli.ts', 'welcome.ts'],
];
/** The top level is one house: its parts may know each other. */
const TOP = LEVELS.length - 1;

const path = (names) => `^src/(${names.map((name) => name.replaceAll('.', '\\.')).join('|')})(/|$)`;

const levelRules = LEVELS.slice(0, TOP).flatMap((folders, level) => [
  {
    name: `level-${level}-points-down`,
    severity: 'error',
    from: { path: path(folders) },
    to: { path: path(LEVELS.slice(level + 1).flat()) },
  },
  ...folders.map((folder) => ({
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
      name: 'service-does-not-know-its-tests',
      severity: 'error',
      from: { path: '^src' },
      to: { path: '^(test|bench|scripts)' },
    },
    {
      name: 'no-development-packages-in-the-service',
      severity: 'error',
      from: { path: '^src' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'] },
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
