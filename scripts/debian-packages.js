// @ts-check
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const MINUTE_MS = 60_000;

const OPTIONS = [
  '-qq',
  '-y',
  '--no-install-recommends',
  ...['-o', 'Acquire::http::Timeout=20', '-o', 'Acquire::Retries=1', '-o', 'DPkg::Lock::Timeout=60'],
];

/**
 * The path of a program of this machine.
 * @param {string[]} names the preferred one first
 * @param {string[]} [folders] where to look in addition to PATH
 * @returns {string | undefined}
 */
export function findProgram(names, folders = []) {
  const all = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...folders];
  return names.flatMap((name) => all.map((folder) => join(folder, name))).find(isExecutable);
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

/** Only root can install packages, and only where there is apt. */
export function canInstallPackages() {
  return process.getuid?.() === 0 && findProgram(['apt-get']) !== undefined;
}

/**
 * The command that installs Debian packages, for people.
 * @param {string[]} packages
 */
export function installCommand(packages) {
  return `apt-get update && apt-get install -y --no-install-recommends ${packages.join(' ')}`;
}

/**
 * Installs Debian packages.
 * @param {string[]} packages
 */
export function installPackages(packages) {
  // a failure is no reason to stop, since lists that are only partly new may do; a mirror that hangs is
  if (aptGet(['update'], MINUTE_MS).signal) return;
  // only the download has a time limit: a killed dpkg would leave half-installed packages behind
  if (aptGet(['install', '--download-only', ...packages], 3 * MINUTE_MS).status !== 0) return;
  aptGet(['install', ...packages]);
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
