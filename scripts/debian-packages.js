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

/** Installing packages needs root and apt. */
export function canInstallPackages() {
  return process.getuid?.() === 0 && findProgram(['apt-get']) !== undefined;
}

/**
 * The command with which a person installs Debian packages.
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
  // stop only if the mirror hangs: after a failed update, lists that are partly new may be sufficient
  if (aptGet(['update'], MINUTE_MS).signal) return;
  // only the download has a time limit: a killed dpkg would leave half-installed packages behind
  if (aptGet(['install', '--download-only', ...packages], 3 * MINUTE_MS).status !== 0) return;
  aptGet(['install', ...packages]);
}

/**
 * @param {string[]} args
 * @param {number} [timeoutMs]
 */
function aptGet(args, timeoutMs) {
  return spawnSync('apt-get', [...OPTIONS, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    killSignal: 'SIGKILL',
    ...(timeoutMs && { timeout: timeoutMs }),
  });
}
