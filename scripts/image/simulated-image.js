// @ts-check
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildIfStale } from '../build.js';
import { dockerfile, PROJECT } from './dockerfile.js';
import { containerOfFolder } from './folder-container.js';

/**
 * Carries out the production stage of the Dockerfile in an empty folder, without a container engine. The files become
 * read-only, and the service runs as a user who owns none of them.
 */
export function simulateImage() {
  buildIfStale();
  const folder = mkdtempSync(join(tmpdir(), 'image-'));
  const root = join(folder, 'customer-authorization-service'); // npm writes the name of the folder into the SBOM
  const remove = () => {
    spawnSync('chmod', ['-R', 'u+w', folder]);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    mkdirSync(root);
    for (const step of dockerfile.productionSteps) carryOut(step, root);
    execFileSync('chmod', ['-R', 'a-w,a+rX', root]);
    chmodSync(folder, 0o755);
    return { container: containerOfFolder(root, join(folder, 'data')), remove };
  } catch (error) {
    remove();
    throw error;
  }
}

/** @param {string} step one instruction @param {string} root */
function carryOut(step, root) {
  const [, instruction, parameters = ''] = /^([A-Z]+) (.+)$/.exec(step) ?? [];
  const command = parameters.replace(/^--mount=\S+ /, '');
  if (instruction === 'RUN')
    execFileSync('sh', ['-c', command], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (instruction !== 'COPY') return;
  const [, source, target] = /^--from=build \/build\/(\S+) (\S+)$/.exec(parameters) ?? [];
  if (source && target) return cpSync(join(PROJECT, source), join(root, target), { recursive: true });
  for (const path of parameters.split(' ').slice(0, -1))
    cpSync(join(PROJECT, path), join(root, path.split('/').at(-1) ?? ''));
}
