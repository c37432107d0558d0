// @ts-check
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const MINUTE = 60_000;

const OPTIONS = [
  '-qq',
  '-y',
  '--no-install-recommends',
  ...['-o', 'Acquire::http::Timeout=20', '-o', 'Acquire::Retries=1', '-o', 'DPkg::Lock::Timeout=60'],
];

/**
 * @typedef {object} Wanted
 * @property {string[]} programs names, the preferred first
 * @property {string[]} packages Debian packages that bring one of them
 * @property {string[]} [folders] where to look beside PATH
 */

/**
 * The path of a program of this machine. With `install`, a missing one is installed first, if we are root and have apt.
 * @param {Wanted} wanted
 * @param {boolean} [install]
 * @returns {string | undefined}
 */
export function findProgram({ programs, packages, folders = [] }, install = false) {
  const found = locate(programs, folders);
  if (found || !install) return found;
  return installPackages(packages) ? locate(programs, folders) : undefined;
}

/**
 * @param {string[]} programs
 * @param {string[]} [folders]
 */
function locate(programs, folders = []) {
  const places = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...folders];
  return programs.flatMap((program) => places.map((place) => join(place, program))).find(isExecutable);
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Installs Debian packages, if we are root and have apt; whether they are there now.
 * @param {string[]} packages
 */
export function installPackages(packages) {
  if (process.getuid?.() !== 0 || !locate(['apt-get'])) return false;
  console.error(`installing ${packages.join(' ')} with apt-get…`);
  // Lists that are only partly new may still do, so a failure is no reason to stop; a frozen mirror is.
  if (aptGet(['update'], MINUTE).signal) return false;
  // Only the download may be cut short: a killed dpkg would leave half-installed packages behind.
  if (aptGet(['install', '--download-only', ...packages], 3 * MINUTE).status !== 0) return false;
  return aptGet(['install', ...packages]).status === 0;
}

/**
 * @param {string[]} args
 * @param {number} [timeout] milliseconds
 */
function aptGet(args, timeout) {
  return spawnSync('apt-get', [...OPTIONS, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    killSignal: 'SIGKILL',
    ...(timeout && { timeout }),
  });
}
