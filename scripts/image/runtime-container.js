// @ts-check
import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** @typedef {import('./built-image.js').BuiltConfiguration} BuiltConfiguration */
/** @typedef {{ runtime: string, bundle: string, rootFolder: string } & BuiltConfiguration} Options */

const MEMORY_LIMIT_BYTES = 512 * 1024 * 1024;
const ID = `check-image-${process.pid}`;
const NO_DEVICES = ['nosuid', 'noexec', 'nodev'];

/** Whether the runtime can run a program of the image here. @param {Options} options */
export function runtimeWorks(options) {
  return spawnRuntime(options, ['node', '--version'], {}).status === 0;
}

/** @param {Options} options @param {string[]} command @param {Record<string, string>} variables */
function spawnRuntime({ runtime, bundle, ...image }, command, variables) {
  writeConfiguration(bundle, image, command, variables);
  return spawnSync(runtime, [...stateFolder(bundle), 'run', '--bundle', bundle, ID], { stdio: 'ignore' });
}

/** @param {Options} options @returns {import('./folder-container.js').Container} */
export function containerOfRuntime({ runtime, bundle, ...image }) {
  return {
    root: join(image.rootFolder, image.config.WorkingDir),
    start(command, variables) {
      writeConfiguration(bundle, image, command, variables);
      return spawn(runtime, [...stateFolder(bundle), 'run', '--bundle', bundle, ID], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
    },
    run(command, variables) {
      const env = Object.entries(variables).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
      return spawnSync(runtime, [...stateFolder(bundle), 'exec', ...env, ID, ...command], { stdio: 'inherit' }).status;
    },
  };
}

/** @param {string} bundle */
const stateFolder = (bundle) => ['--root', join(bundle, 'state')];

/**
 * Writes the configuration of the runtime (OCI runtime specification, config.md). The container has the network of this
 * machine, so that the check reaches its ports.
 * @param {string} bundle
 * @param {Pick<Options, 'rootFolder' | 'config'>} image
 * @param {string[]} args
 * @param {Record<string, string>} variables
 */
function writeConfiguration(bundle, { rootFolder, config }, args, variables) {
  const [uid = 0, gid = 0] = config.User.split(':').map(Number);
  const env = [...config.Env, ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)];
  const none = { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] };
  const specification = {
    ociVersion: '1.0.2',
    process: { user: { uid, gid }, args, env, cwd: config.WorkingDir, capabilities: none, noNewPrivileges: true },
    root: { path: rootFolder, readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=64k'] },
      { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: [...NO_DEVICES, 'mode=1777', 'size=64m'] },
    ],
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
      resources: { memory: { limit: MEMORY_LIMIT_BYTES } },
    },
  };
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(specification));
}
