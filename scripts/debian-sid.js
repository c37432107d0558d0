// @ts-check
// Fetches packages of Debian's next release without installing them.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** @param {string} name the path of a folder in the user's cache */
export function cacheFolder(name) {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), name);
}

/**
 * Downloads a package and what it depends on with a private apt configuration, which checks signatures, and unpacks all
 * of it into a folder.
 *
 * @param {string} name
 * @param {string} target
 * @param {{ leftOut: RegExp }} options packages that are not needed
 */
export function fetchFromSid(name, target, { leftOut }) {
  mkdirSync(join(target, '..'), { recursive: true });
  const folder = mkdtempSync(`${target}.`);
  try {
    for (const each of ['state/lists/partial', 'cache/archives/partial', 'etc', 'packages', 'root'])
      mkdirSync(join(folder, each), { recursive: true });
    const [mirror] = run('apt-get', ['indextargets', '--format', '$(REPO_URI)']).split('\n').filter(isDebian);
    writeFileSync(join(folder, 'status'), '');
    writeFileSync(join(folder, 'sources.list'), `deb [signed-by=${KEYRING}] ${mirror} sid main\n`);
    const apt = aptOptions(folder);
    run('apt-get', [...apt, 'update']);
    const resolved = run('apt-get', [...apt, '--print-uris', '-y', 'install', name]);
    const names = [...resolved.matchAll(/^'\S+' ([^_\s]+)_/gm)].map(([, found]) => String(found));
    const wanted = names.filter((each) => !leftOut.test(each));
    execFileSync('apt-get', [...apt, 'download', ...wanted], { cwd: join(folder, 'packages'), stdio: 'ignore' });
    for (const file of readdirSync(join(folder, 'packages')))
      run('dpkg-deb', ['-x', join(folder, 'packages', file), join(folder, 'root')]);
    if (!existsSync(target)) renameSync(join(folder, 'root'), target);
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
