// @ts-check
// A virtual environment with the Python packages that the examples of the guides need.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { canInstallPackages, findProgram, installCommand, installPackages } from './debian-packages.js';
import { cacheFolder } from './debian-sid.js';

const REQUIREMENTS = join(import.meta.dirname, '../examples/integrating/python/requirements.txt');
const DEBIAN_PACKAGES = ['python3-venv'];
const MINUTE_MS = 60_000;
const MAX_ATTEMPTS = 3;

const findPython = () => findProgram(['python3']);

/** Another one for each version of Python and each list of packages. */
function environmentFolder() {
  const python = findPython();
  const version = python ? spawnSync(python, ['--version'], { encoding: 'utf8' }).stdout.trim() : '';
  const hash = createHash('sha256').update(version).update(readFileSync(REQUIREMENTS)).digest('hex').slice(0, 12);
  return cacheFolder(`guides-python-${hash}`);
}

/** The path of a Python that has the packages. */
export function findPythonWithPackages() {
  if (process.env.TEST_PYTHON) return process.env.TEST_PYTHON;
  const path = join(environmentFolder(), 'bin/python');
  return existsSync(path) ? path : undefined;
}

/** The command with which a person installs them. */
export function pythonCommand() {
  const folder = environmentFolder();
  return `python3 -m venv ${folder} && ${folder}/bin/pip install -r examples/integrating/python/requirements.txt`;
}

export const canInstallPythonPackages = () => findPython() !== undefined || canInstallPackages();

/** Creates the environment. The packages come from the registry that pip is configured for. */
export function installPythonPackages() {
  if (!hasVenv()) {
    if (!canInstallPackages()) throw new Error(`Python has no module venv: ${installCommand(DEBIAN_PACKAGES)}`);
    installPackages(DEBIAN_PACKAGES);
  }
  const target = environmentFolder();
  mkdirSync(join(target, '..'), { recursive: true });
  const folder = mkdtempSync(`${target}.`);
  try {
    execFileSync('python3', ['-m', 'venv', folder], { stdio: ['ignore', 'ignore', 'pipe'], timeout: 3 * MINUTE_MS });
    installWithPip(join(folder, 'bin/python'), 1);
    if (!existsSync(target)) renameSync(folder, target);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} python @param {number} attempt */
function installWithPip(python, attempt) {
  const parameters = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', REQUIREMENTS];
  const { status, stderr } = spawnSync(python, parameters, { encoding: 'utf8', timeout: 2 * MINUTE_MS });
  if (status === 0) return;
  if (attempt === MAX_ATTEMPTS) throw new Error(`pip failed: ${stderr.trim().split('\n').at(-1)}`);
  installWithPip(python, attempt + 1); // a registry that hangs often responds to the next request
}

function hasVenv() {
  return spawnSync('python3', ['-c', 'import venv, ensurepip']).status === 0;
}
