/**
 * A folder imports folders of lower levels only, and none of its own level (docs/architecture.md). The lowest level is the
 * first.
 */
const LEVELS = [
  ['platform', 'migrations'],
  ['oauth'],
  ['registry', 'access-token'],
  ['customer', 'feed'],
  ['session'],
  ['redemption'],
  ['http'],
  ['identity'],
  ['token', 'transfer', 'agent-auth'],
  ['grants', 'discovery', 'operator/customers', 'operator/registry'],
  [
    'app.module.ts',
    'load-extension.ts',
    'uncaught-errors.ts',
    'bootstrap.ts',
    'run-service.ts',
    'operator/cli',
    'public/service.ts',
    'public/testing-host.ts',
    'main.ts',
    'cli.ts',
  ],
];
/** The files of the highest level may import each other. */
const MIXED_LEVEL = LEVELS.at(-1);
/** The names that grants of other packages may import. The file re-exports from levels 0 to 8. */
const GRANT_API = '^src/public/grant\\.ts$';
const GRANTS_LEVEL = LEVELS.findIndex((folders) => folders.includes('grants'));

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
  ...(folders === MIXED_LEVEL ? [] : folders).map((folder) => ({
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
      from: { path: '^src' },
      to: { dependencyTypes: ['npm-dev', 'npm-peer', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'the-kit-uses-the-entries-of-the-service',
      severity: 'error',
      from: { path: '^packages/conformance-kit/src/' },
      to: { path: '^(src|test|bench|scripts)/', pathNot: '^src/public/' },
    },
    {
      name: 'the-kit-declares-its-packages',
      severity: 'error',
      from: { path: '^packages/conformance-kit/src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['npm-peer'] },
    },
    {
      name: 'the-try-it-page-uses-the-entries-for-extensions',
      severity: 'error',
      from: { path: '^packages/try-it/src/' },
      to: { path: '^(src|test|bench|scripts)/', pathNot: '^src/public/(service|grant)\\.ts$' },
    },
    {
      name: 'the-try-it-page-declares-its-packages',
      severity: 'error',
      from: { path: '^packages/try-it/src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['npm-peer'] },
    },
    {
      name: 'the-testing-host-is-for-the-kit',
      severity: 'error',
      from: { path: '', pathNot: '^packages/conformance-kit/' },
      to: { path: '^src/public/testing-host\\.ts$' },
    },
    {
      name: 'token-verifier-does-not-know-the-service',
      severity: 'error',
      from: { path: '^packages/token-verifier/' },
      to: { path: '^(src|test|bench|scripts)/' },
    },
    {
      name: 'token-verifier-depends-on-jose-only',
      severity: 'error',
      from: { path: '^packages/token-verifier/src/' },
      to: { path: 'node_modules/', pathNot: 'node_modules/jose/' },
    },
    {
      name: 'browser-client-depends-on-nothing',
      severity: 'error',
      from: { path: '^packages/browser-client/src/' },
      to: { pathNot: '^packages/browser-client/src/' },
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
