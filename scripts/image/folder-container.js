// @ts-check
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { dockerfile } from './dockerfile.js';

/**
 * @typedef {object} Container a way to run programs with the files of the image
 * @property {string} root the folder of the service, as this process sees it
 * @property {(command: string[], variables: Record<string, string>) => import('node:child_process').ChildProcess} start
 * @property {(command: string[], variables: Record<string, string>) => number | null} run runs a program while the
 *   service runs; returns its exit code
 */

/**
 * Runs programs in a folder with the Node of this process, as a user who may only write to `data`.
 * @param {string} root
 * @param {string} data
 * @returns {Container}
 */
export function containerOfFolder(root, data) {
  mkdirSync(data);
  chmodSync(data, 0o777);
  const asUser = process.getuid?.() === 0 ? { uid: dockerfile.user, gid: dockerfile.user } : {};
  /** @param {Record<string, string>} variables */
  const options = (variables) => ({
    cwd: root,
    ...asUser,
    env: {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      ...dockerfile.variables,
      DATA_DIR: data,
      ...variables,
    },
  });
  return {
    root,
    start: ([program = '', ...parameters], variables) =>
      spawn(program, parameters, { ...options(variables), stdio: ['ignore', 'pipe', 'inherit'] }),
    run: ([program = '', ...parameters], variables) =>
      spawnSync(program, parameters, { ...options(variables), stdio: ['ignore', 'inherit', 'inherit'] }).status,
  };
}
