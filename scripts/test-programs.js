// @ts-check
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE, fetchMysql, findMysql } from '../test/cluster/servers/mysql-server.js';
import { canInstallPackages, findProgram, installCommand, installPackages } from './debian-packages.js';
import { cacheFolder, fetchFromSid } from './debian-sid.js';
import {
  canInstallPythonPackages,
  findPythonWithPackages,
  installPythonPackages,
  pythonCommand,
} from './python-packages.js';

const SBIN = ['/usr/sbin'];
const GALERA_PROVIDERS = ['/usr/lib/galera', '/usr/lib64/galera-4', '/usr/lib/galera-4'];

/**
 * @typedef {object} TestProgram a program that the tests run
 * @property {string} name for messages
 * @property {string} command the command with which a person installs it
 * @property {string} [alternative] another way to run the tests
 * @property {() => unknown} find returns `undefined` if the program is missing
 * @property {() => boolean} canInstall
 * @property {() => void} install
 */

/**
 * @param {string} name
 * @param {string[]} packages the Debian packages that contain it
 * @param {() => unknown} find
 * @param {string} [alternative]
 * @returns {TestProgram}
 */
function ofDebian(name, packages, find, alternative) {
  return {
    name,
    command: installCommand(packages),
    ...(alternative && { alternative }),
    find,
    canInstall: canInstallPackages,
    install: () => installPackages(packages),
  };
}

/** The path of mariadbd. */
export const findMariadb = () => findProgram(['mariadbd'], SBIN);

/** The path of the Chromium without windows, which takes half of the processor time of the other one. */
export const findChromium = () =>
  process.env.TEST_CHROMIUM || findProgram(['chromium-headless-shell', 'chrome-headless-shell']);

/** The path of a Firefox. */
export const findFirefox = () => process.env.TEST_FIREFOX || findProgram(['firefox-esr', 'firefox']);

/** The library that gives a process another time than that of the machine. */
export function findFaketime() {
  const paths = ['x86_64', 'aarch64'].map((cpu) => `/usr/lib/${cpu}-linux-gnu/faketime/libfaketimeMT.so.1`);
  return paths.find((path) => existsSync(path));
}

const KUBECTL_CACHE = cacheFolder('kubectl-sid');
/** The path of a program that builds the manifests. The kubectl of Debian 12 is too old. */
export const findKustomize = () => findProgram(['kustomize', 'kubectl'], [join(KUBECTL_CACHE, 'usr/bin')]);

/** @returns {{ mariadbd: string, provider: string } | undefined} the programs of a Galera node */
export function findGalera() {
  const mariadbd = findMariadb();
  const others = ['wsrep_sst_rsync', 'rsync'].map((name) => findProgram([name], SBIN));
  const libraries = GALERA_PROVIDERS.map((folder) => join(folder, 'libgalera_smm.so'));
  const provider = process.env.GALERA_PROVIDER || libraries.find((path) => existsSync(path));
  return mariadbd && provider && others.every(Boolean) ? { mariadbd, provider } : undefined;
}

export const MARIADB = ofDebian(
  'MariaDB server',
  ['mariadb-server-core', 'mariadb-client-core'],
  findMariadb,
  'TEST_DATABASE_URL=mariadb://USER:PASSWORD@HOST:PORT/  (an account that may create databases)',
);
export const CHROMIUM = ofDebian(
  'Chromium',
  ['chromium-headless-shell'],
  findChromium,
  'TEST_CHROMIUM=/path/to/chrome-headless-shell',
);
export const FIREFOX = ofDebian('Firefox', ['firefox-esr'], findFirefox, 'TEST_FIREFOX=/path/to/firefox');
export const MARIADB_BACKUP = ofDebian('MariaDB backup', ['mariadb-backup', 'mariadb-client'], () =>
  findProgram(['mariadb-dump']) ? findProgram(['mariadb-backup']) : undefined,
);
export const FAKETIME = ofDebian('libfaketime', ['libfaketime'], findFaketime);
export const NGINX = ofDebian('nginx', ['nginx-light'], () => findProgram(['nginx'], SBIN));
export const PROMTOOL = ofDebian('promtool', ['prometheus'], () => findProgram(['promtool']));
export const GALERA = ofDebian('Galera node', ['mariadb-server', 'galera-4', 'rsync'], findGalera);
export const WRK = ofDebian('load generator wrk', ['wrk'], () => findProgram(['wrk']));

const hasApt = () => findProgram(['apt-get']) !== undefined;

/** @type {TestProgram} */
export const MYSQL = {
  name: 'MySQL server',
  command: `apt-get download mysql-server-core and its libraries from Debian sid, unpacked into ${CACHE}`,
  find: findMysql,
  canInstall: hasApt,
  install: fetchMysql,
};

/** @type {TestProgram} */
export const KUSTOMIZE = {
  name: 'kustomize',
  command: `apt-get download kubectl from Debian sid, unpacked into ${KUBECTL_CACHE}`,
  find: findKustomize,
  canInstall: hasApt,
  install: () => fetchFromSid('kubectl', KUBECTL_CACHE, { leftOut: /^lib/ }),
};

/** @type {TestProgram} */
export const PYTHON = {
  name: 'Python with requests and PyJWT',
  get command() {
    return pythonCommand();
  },
  alternative: 'TEST_PYTHON=/path/to/python  (with the packages)',
  find: findPythonWithPackages,
  canInstall: canInstallPythonPackages,
  install: installPythonPackages,
};
