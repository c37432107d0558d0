// @ts-check
/** The programs that tests run, and how a fresh Debian machine gets them (docs/testing.md). */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** The option that forbids a test command to install programs. */
export const NO_INSTALL = '--no-install';
const SID = join(import.meta.dirname, 'debian-sid.sh');
const REQUIREMENTS = join(import.meta.dirname, '../examples/integrating/python/requirements.txt');

/**
 * @typedef {object} Program
 * @property {string} name for messages
 * @property {string} tests the tests that need it
 * @property {string} command the shell command that installs it
 * @property {() => unknown} find returns `undefined` if the program is missing
 */

/**
 * The path of a program of this machine.
 * @param {string[]} names the preferred one first
 * @param {string[]} [folders] where to look in addition to PATH
 */
export function findProgram(names, folders = []) {
  const all = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), '/usr/sbin', ...folders];
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

/** @param {string} name the path of a folder in the user's cache */
export function cacheFolder(name) {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), name);
}

/** After a failed update, lists that are partly new may be sufficient. @param {string} packages of Debian */
function aptGet(packages) {
  return `apt-get update -qq; apt-get install -qq --no-install-recommends -o DPkg::Lock::Timeout=60 ${packages}`;
}

/**
 * The command that unpacks a package of Debian's next release into a folder, without installing it.
 * @param {string} name @param {string} folder @param {string} [leftOut] a pattern of packages that are not needed
 */
export function fetchFromSid(name, folder, leftOut = '^$') {
  return `sh ${SID} ${name} ${folder} '${leftOut}'`;
}

/** The path of mariadbd. */
export const findMariadb = () => findProgram(['mariadbd']);

/** The library that gives a process another time than that of the machine. */
export function findFaketime() {
  const paths = ['x86_64', 'aarch64'].map((cpu) => `/usr/lib/${cpu}-linux-gnu/faketime/libfaketimeMT.so.1`);
  return paths.find((path) => existsSync(path));
}

const KUBECTL = cacheFolder('kubectl-sid');
/** The path of a program that builds the manifests. The kubectl of Debian 12 is too old. */
export const findKustomize = () => findProgram(['kustomize', 'kubectl'], [join(KUBECTL, 'usr/bin')]);

/** @returns {{ mariadbd: string, provider: string } | undefined} the programs of a Galera node */
export function findGalera() {
  const mariadbd = findMariadb();
  const libraries = ['/usr/lib/galera', '/usr/lib64/galera-4'].map((folder) => join(folder, 'libgalera_smm.so'));
  const provider = process.env.GALERA_PROVIDER || libraries.find((path) => existsSync(path));
  return mariadbd && provider && findProgram(['wsrep_sst_rsync']) ? { mariadbd, provider } : undefined;
}

/** @type {Program} */
export const MARIADB = {
  name: 'MariaDB server',
  tests: 'tests on MariaDB (or set TEST_DATABASE_URL to a server)',
  command: aptGet('mariadb-server-core mariadb-client-core'),
  find: findMariadb,
};
/** The Chromium without windows, which takes half of the processor time of the other one. @type {Program} */
export const CHROMIUM = {
  name: 'Chromium',
  tests: 'browser tests in Chromium (or set TEST_CHROMIUM to a chrome-headless-shell)',
  command: aptGet('chromium-headless-shell'),
  find: () => process.env.TEST_CHROMIUM || findProgram(['chromium-headless-shell', 'chrome-headless-shell']),
};
/** @type {Program} */
export const FIREFOX = {
  name: 'Firefox',
  tests: 'browser tests in Firefox (or set TEST_FIREFOX to a firefox)',
  command: aptGet('firefox-esr'),
  find: () => process.env.TEST_FIREFOX || findProgram(['firefox-esr', 'firefox']),
};
/** @type {Program} */
export const MARIADB_BACKUP = {
  name: 'mariadb-backup and mariadb-dump',
  tests: 'the restore of MariaDB',
  command: aptGet('mariadb-backup mariadb-client'),
  find: () => findProgram(['mariadb-dump']) && findProgram(['mariadb-backup']),
};
/** @type {Program} */
const FAKETIME = {
  name: 'libfaketime',
  tests: 'tests of clocks that differ',
  command: aptGet('libfaketime'),
  find: findFaketime,
};
/** @type {Program} */
const NGINX = {
  name: 'nginx',
  tests: 'tests of the configuration of nginx',
  command: aptGet('nginx-light'),
  find: () => findProgram(['nginx']),
};
/** @type {Program} */
const PROMTOOL = {
  name: 'promtool',
  tests: 'tests of the alerts',
  command: aptGet('prometheus'),
  find: () => findProgram(['promtool']),
};
/** @type {Program} */
const KUSTOMIZE = {
  name: 'kustomize or kubectl',
  tests: 'tests of the Kubernetes manifests',
  command: fetchFromSid('kubectl', KUBECTL, '^lib'),
  find: findKustomize,
};
/** Checks the types of the Python examples. Those who copy an example do not need it. */
const MYPY = 'mypy==2.4.1';
/** A virtual environment, another one for each list of packages. */
const VENV = cacheFolder(
  `guides-python-${createHash('sha256').update(readFileSync(REQUIREMENTS)).update(MYPY).digest('hex').slice(0, 12)}`,
);
const PYTHON_PATH = join(VENV, 'bin/python');
/** @type {Program} */
export const PYTHON = {
  name: 'Python with requests, PyJWT and mypy',
  tests: 'the Python examples (or set TEST_PYTHON to a python that has the packages)',
  command:
    `(python3 -c 'import venv, ensurepip' || (${aptGet('python3-venv')})) && ` +
    `python3 -m venv ${VENV}.new && ${VENV}.new/bin/pip install --quiet -r ${REQUIREMENTS} ${MYPY} && mv ${VENV}.new ${VENV}`,
  find: () => process.env.TEST_PYTHON || (isExecutable(PYTHON_PATH) ? PYTHON_PATH : undefined),
};
const NEXTJS_PACKAGE = join(import.meta.dirname, '../examples/integrating/nextjs/package.json');
const NEXTJS_FOLDER = cacheFolder(
  `guides-nextjs-${createHash('sha256').update(readFileSync(NEXTJS_PACKAGE)).digest('hex').slice(0, 12)}`,
);
/** @type {Program} */
export const NEXTJS = {
  name: 'Next.js',
  tests: 'the page of examples/integrating/nextjs',
  command:
    `mkdir -p ${NEXTJS_FOLDER}.new && cp ${NEXTJS_PACKAGE} ${NEXTJS_FOLDER}.new && ` +
    `npm install --prefix ${NEXTJS_FOLDER}.new --ignore-scripts --no-package-lock --no-audit --silent && ` +
    `mv ${NEXTJS_FOLDER}.new ${NEXTJS_FOLDER}`,
  find: () => (existsSync(NEXTJS_FOLDER) ? NEXTJS_FOLDER : undefined),
};
/** @type {Program} */
export const GALERA = {
  name: 'Galera node',
  tests: 'the tests of clusters',
  command: aptGet('mariadb-server galera-4 rsync'),
  find: findGalera,
};
/** @type {Program} */
export const WRK = { name: 'wrk', tests: 'the load', command: aptGet('wrk'), find: () => findProgram(['wrk']) };

/** The programs of `npm run test:processes`. */
export const PROCESSES = [MARIADB, MARIADB_BACKUP, FAKETIME, CHROMIUM, NGINX, PROMTOOL, KUSTOMIZE, PYTHON, NEXTJS];

/** Installing programs needs root and apt. */
function canInstall() {
  return process.getuid?.() === 0 && findProgram(['apt-get']) !== undefined;
}

/**
 * Installs the programs that are missing, after it has printed the commands. Returns those that are still missing.
 *
 * @param {Program[]} programs
 * @param {string[]} args of the test command
 * @throws Error if a program is missing and the arguments have `--no-install`
 */
export function installPrograms(programs, args, isPossible = canInstall()) {
  const missing = programs.filter(({ find }) => !find());
  const list = missing.map(({ name, command }) => `  ${name}: ${command}`).join('\n');
  if (missing.length > 0 && args.includes(NO_INSTALL)) throw new Error(`Missing programs:\n${list}`);
  if (missing.length === 0 || !isPossible) return missing;
  console.error(`Installs missing programs (to install nothing, add -- ${NO_INSTALL}):\n${list}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const { command } of missing) spawnSync('sh', ['-c', command], { stdio: ['ignore', 'ignore', 'inherit'], env });
  return missing.filter(({ find }) => !find());
}

/** Which tests did not run, and how to get their programs. @param {Program[]} missing */
export function missingText(missing) {
  return missing
    .map(({ name, tests, command }) => `NOT RUN, because ${name} is missing: ${tests}. To get it:\n  ${command}`)
    .join('\n');
}
