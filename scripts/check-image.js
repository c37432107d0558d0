// @ts-check
/**
 * `npm run check:image`: builds the image and runs it. It must have the expected files, pass its health check, and end
 * on SIGTERM.
 *
 * The Dockerfile is built with buildah. As root on Debian, the command installs buildah, debootstrap and runc if they
 * are missing; with `--no-install` it does not. Without them, or with `--simulate`, it carries out the steps of the
 * Dockerfile in a folder, and says so.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildImage } from './image/built-image.js';
import { dockerfile } from './image/dockerfile.js';
import { simulateImage } from './image/simulated-image.js';
import { installPrograms, NO_INSTALL, waysToGet } from './install-programs.js';
import { BUILDAH } from './test-programs.js';

const START_TIMEOUT_MS = 30_000;
const SIMULATE = '--simulate';
/** Loads the packages that the service loads at their first use: its start would not notice that one is missing. */
const LOAD_LAZY_PACKAGES =
  "require('@node-rs/argon2').hashSync('x'); import('jose'); require('class-validator-jsonschema')";
const VARIABLES = { AUTH_URL: 'http://localhost:3000', PORT: '0', MANAGEMENT_PORT: '0', HOST: '127.0.0.1' };

const image = canBuild(process.argv.slice(2)) ? buildImage(console.log) : simulateImage();
try {
  checkFiles(image.container.root);
  await checkService(image.container);
  const megabytes = execFileSync('du', ['-sm', image.container.root], { encoding: 'utf8' }).split('\t')[0];
  console.log(`passed: the image has ${megabytes} MB in addition to Node`);
} finally {
  image.remove();
}

/** @param {string[]} args */
function canBuild(args) {
  if (args.includes(SIMULATE)) {
    console.log('simulates the build, without a container engine');
    return false;
  }
  // a missing program leads to the simulation, with --no-install too
  const missing = args.includes(NO_INSTALL)
    ? [BUILDAH].filter((program) => !program.find())
    : installPrograms([BUILDAH], { command: 'npm run check:image', args });
  if (missing.length === 0) return true;
  console.log('simulates the build, because no container engine is installed. To get one:');
  for (const line of waysToGet(missing)) console.log(`  ${line}`);
  return false;
}

/** @param {string} root */
function checkFiles(root) {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' });
  const unused = files.filter((name) => /\.(map|ts)$/.test(name) || /\/README\.md$/i.test(name));
  if (unused.length > 0) throw new Error(`the image has files that the service does not use: ${unused.slice(0, 5)}`);
  const tryIt = files.filter((name) => /try-it|demo-|(^|\/)qr(\/|\.js)/.test(name));
  if (tryIt.length > 0) throw new Error(`the image has files of the try-it page: ${tryIt.slice(0, 5)}`);
  if (!files.some((name) => /\/LICENSE\.md$/.test(name))) throw new Error('the image has no licenses of its packages');
  if (!existsSync(join(root, 'dist/main.js'))) throw new Error('the image has no dist/main.js');
  /** @type {{ components: { name: string }[] }} */
  const { components } = JSON.parse(readFileSync(join(root, 'sbom.cdx.json'), 'utf8'));
  const names = components.map(({ name }) => name);
  if (
    !names.includes('typeorm') ||
    names.includes('vitest') ||
    names.includes('token-verifier') ||
    names.includes('conformance-kit') ||
    names.includes('try-it')
  )
    throw new Error('sbom.cdx.json has the wrong packages');
}

/** @param {import('./image/folder-container.js').Container} container */
async function checkService(container) {
  const service = container.start(dockerfile.command, VARIABLES);
  let output = '';
  service.stdout?.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  try {
    const [, port = ''] = await until(() => /port (\d+) for the cluster/.exec(output));
    /** @param {string} managementPort */
    const healthOf = (managementPort) =>
      container.run(dockerfile.healthCheck, { ...VARIABLES, MANAGEMENT_PORT: managementPort });
    if (healthOf(port) !== 0) throw new Error('HEALTHCHECK fails although the service listens');
    if (healthOf('1') !== 1) throw new Error('HEALTHCHECK succeeds although no service listens');
    const node = ['node', '--eval', LOAD_LAZY_PACKAGES];
    if (container.run(node, {}) !== 0) throw new Error('a package that is loaded at its first use is missing');
    const { status } = await fetch(`http://127.0.0.1:${port}/docs/swagger-ui-bundle.js`);
    if (status !== 200) throw new Error(`the image has no page of the OpenAPI document: ${status}`);
    const ended = once(service, 'exit');
    service.kill('SIGTERM');
    const [code] = await ended;
    if (code !== 0) throw new Error(`the service ended with ${code} after SIGTERM`);
  } finally {
    service.kill('SIGKILL');
  }
}

/** @template Value @param {() => Value | null} find @returns {Promise<Value>} */
async function until(find) {
  for (let waitedMs = 0; waitedMs < START_TIMEOUT_MS; waitedMs += 50) {
    const found = find();
    if (found) return found;
    await sleep(50);
  }
  throw new Error('the service did not start');
}
