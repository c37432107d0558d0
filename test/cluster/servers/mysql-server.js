// @ts-check
// Fetches the MySQL server of Debian's next release without installing it, and finds the fetched server.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder, fetchFromSid } from '../../../scripts/programs.js';

/** The folder that the server is unpacked into. */
const CACHE = cacheFolder('mysql-server-sid');
const LIBRARIES = `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`;
/** Packages that only the scripts of the package need, or that every machine has. */
const UNWANTED = '^(perl|libperl|libgdbm|libdb5|libc-gconv|openssl-provider-legacy)';

/**
 * The command that runs a MySQL server with Group Replication. It uses its own loader, so that it needs no library of
 * the machine. `undefined` if no server was fetched.
 *
 * @returns {string[] | undefined}
 */
export function findMysql() {
  if (!existsSync(join(CACHE, 'usr/sbin/mysqld'))) return undefined;
  const loader = [join(CACHE, 'usr/lib64'), join(CACHE, 'usr/lib', LIBRARIES)].flatMap(loadersIn)[0];
  if (!loader) return undefined;
  const path = ['usr/lib', 'lib'].map((folder) => join(CACHE, folder, LIBRARIES)).join(':');
  return [
    ...[loader, '--inhibit-cache', '--library-path', path, join(CACHE, 'usr/sbin/mysqld'), '--no-defaults'],
    ...[`--basedir=${join(CACHE, 'usr')}`, `--plugin-dir=${join(CACHE, 'usr/lib/mysql/plugin')}`],
    `--lc-messages-dir=${join(CACHE, 'usr/share/mysql')}`,
    `--character-sets-dir=${join(CACHE, 'usr/share/mysql/charsets')}`,
  ];
}

/** @param {string} folder */
function loadersIn(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => /^ld-linux-.*\.so/.test(name))
    .map((name) => join(folder, name));
}

/** @type {import('../../../scripts/programs.js').Program} */
export const MYSQL = {
  name: 'MySQL server',
  tests: 'the tests on a MySQL group',
  command: fetchFromSid('mysql-server-core', CACHE, UNWANTED),
  find: findMysql,
};

/** Creates a new data folder. @param {string[]} command @param {string} data */
export function initializeMysql([program = '', ...options], data) {
  const template = `${CACHE}.data`;
  if (!existsSync(template)) {
    const draft = mkdtempSync(`${template}.`);
    const parameters = ['--initialize-insecure', `--datadir=${join(draft, 'data')}`, '--innodb-redo-log-capacity=64M'];
    execFileSync(program, [...options, ...asRoot(), ...parameters], { stdio: 'ignore' });
    rmSync(join(draft, 'data/auto.cnf'));
    renameSync(join(draft, 'data'), template);
    rmSync(draft, { recursive: true, force: true });
  }
  cpSync(template, data, { recursive: true });
}

/** mysqld does not run as root without this option. */
export function asRoot() {
  return process.getuid?.() === 0 ? ['--user=root'] : [];
}
