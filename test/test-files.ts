import { IS_NIGHTLY } from './nightly.js';

/** The folders of the tests of the service. Each has a subject. */
const SUBJECTS = 'test/!(browser|cluster|faults|fuzz|support)';
/** Packages whose end-to-end tests run with those of the service. */
const PACKAGES = 'packages/{conformance-kit,try-it}/test';

/** Tests of the example packages, in processes of their own as the packages of other teams. */
const EXAMPLES = 'examples/*/test/*.spec.ts';
/** The example with a table of its own. The others send only statements of the service, which has tests of them. */
const EXAMPLE_WITH_TABLE = 'examples/device-approval/test/*.spec.ts';

const ON_SQLITE = [`${SUBJECTS}/{,both-databases/}*.e2e-spec.ts`, `${PACKAGES}/*.e2e-spec.ts`];
const ISOLATED = [
  `${SUBJECTS}/isolated/{,both-databases/}*.e2e-spec.ts`,
  `${PACKAGES}/isolated/*.e2e-spec.ts`,
  EXAMPLES,
];

/**
 * The test files of each project of vitest, by the folder below the subject: `both-databases`, `isolated` and
 * `processes` (docs/testing.md). `npm test` fails if a statement of the service ran on SQLite only.
 */
export const TEST_FILES = {
  unit: { include: [`${SUBJECTS}/*.spec.ts`, 'packages/*/test/*.spec.ts'] },
  sqlite: { include: ON_SQLITE },
  mariadb: { include: IS_NIGHTLY ? ON_SQLITE : [`${SUBJECTS}/both-databases/*.e2e-spec.ts`] },
  isolated: { include: ISOLATED },
  'isolated-mariadb': {
    include: IS_NIGHTLY ? ISOLATED : [`${SUBJECTS}/isolated/both-databases/*.e2e-spec.ts`, EXAMPLE_WITH_TABLE],
  },
  processes: { include: [`${SUBJECTS}/processes/{,both-databases/}*spec.ts`, 'packages/*/test/processes/*spec.ts'] },
  'processes-mariadb': { include: [`${SUBJECTS}/processes/{both-databases,mariadb}/*.e2e-spec.ts`] },
  browser: { include: ['{test,packages/{browser-client,try-it}/test}/browser/*.spec.ts'] },
  'isolated-browser': { include: ['test/browser/isolated/*.spec.ts'] },
};
