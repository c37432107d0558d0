// @ts-check
// Fetches the MySQL server of Debian's next release without installing it, and finds the fetched server.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The folder that the server is unpacked into. */
export const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'mysql-server-sid');
const LIBRARIES = `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`;
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
/** Packages that only the scripts of the package need, or that every machine has. */
const UNWANTED = /^(perl|libperl|libgdbm|libdb5|libc-gconv|openssl-provider-legacy)/;

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

/** Downloads the packages with a private apt configuration, which checks signatures, and unpacks them into CACHE. */
export function fetchMysql() {
  mkdirSync(join(CACHE, '..'), { recursive: true });
  const folder = mkdtempSync(`${CACHE}.`);
  try {
    for (const each of ['state/lists/partial', 'cache/archives/partial', 'etc', 'packages', 'root'])
      mkdirSync(join(folder, each), { recursive: true });
    const [mirror] = run('apt-get', ['indextargets', '--format', '$(REPO_URI)']).split('\n').filter(isDebian);
    writeFileSync(join(folder, 'status'), '');
    writeFileSync(join(folder, 'sources.list'), `deb [signed-by=${KEYRING}] ${mirror} sid main\n`);
    const apt = aptOptions(folder);
    run('apt-get', [...apt, 'update']);
    const resolved = run('apt-get', [...apt, '--print-uris', '-y', 'install', 'mysql-server-core']);
    const names = [...resolved.matchAll(/^'\S+' ([^_\s]+)_/gm)].map(([, name]) => String(name));
    const wanted = names.filter((name) => !UNWANTED.test(name));
    execFileSync('apt-get', [...apt, 'download', ...wanted], { cwd: join(folder, 'packages'), stdio: 'ignore' });
    for (const name of readdirSync(join(folder, 'packages')))
      run('dpkg-deb', ['-x', join(folder, 'packages', name), join(folder, 'root')]);
    if (!existsSync(CACHE)) renameSync(join(folder, 'root'), CACHE);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder */
function aptOptions(folder) {
  const options = {
    'Dir::State': join(folder, 'state'),
    'Dir::State::status': join(folder, 'status'),
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Etc': join(folder, 'etc'),
    'Dir::Etc::sourcelist': join(folder, 'sources.list'),
    'Dir::Etc::sourceparts': '-',
    'APT::Install-Recommends': 'false',
    'Acquire::Languages': 'none',
    'APT::Sandbox::User': 'root',
  };
  return ['-q', ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])];
}

/** @param {string} mirror */
const isDebian = (mirror) => /\/debian\/?$/.test(mirror);

/** @param {string} program @param {string[]} parameters */
function run(program, parameters) {
  return execFileSync(program, parameters, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

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
