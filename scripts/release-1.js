// @ts-check
// Builds release 1 from the history of the repository, for the tests of the upgrade (scripts/test-upgrade.js).
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const PROJECT = dirname(import.meta.dirname);
/** The last commit of release 1. */
export const RELEASE_1_COMMIT = '88346b835370788466d45191276fd24c18fa4e41';
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'customer-authorization-release-1');
const BUILT = join(CACHE, RELEASE_1_COMMIT);

/**
 * The folder of the built release 1. The first call takes two minutes, because it installs the packages of release 1.
 * Later calls use the same folder. `undefined` if the history does not contain the commit, as in a shallow clone.
 *
 * @returns {string | undefined}
 */
export function buildRelease1() {
  if (existsSync(BUILT)) return BUILT;
  if (spawnSync('git', ['cat-file', '-e', `${RELEASE_1_COMMIT}^{tree}`], { cwd: PROJECT }).status !== 0)
    return undefined;
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, 'building-'));
  try {
    console.error(`building release 1 in ${CACHE}…`);
    // An archive and not a worktree, because git would record the worktree of a run that was killed.
    run('git', ['archive', `--output=${join(folder, 'source.tar')}`, RELEASE_1_COMMIT], PROJECT);
    run('tar', ['-xf', 'source.tar'], folder);
    run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], folder);
    run(process.execPath, ['scripts/build.js'], folder);
    run('npm', ['prune', '--omit=dev', '--no-audit', '--no-fund'], folder);
    if (!existsSync(BUILT)) renameSync(folder, BUILT);
    return BUILT;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} program @param {string[]} parameters @param {string} cwd */
function run(program, parameters, cwd) {
  execFileSync(program, parameters, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
}
