// @ts-check
/**
 * `npm run release -- FOLDER`: builds the tarballs of all packages, the SBOM of the service, and the image where Docker
 * can build it, from the last commit. Builds everything but the image in two folders, and fails if a byte differs.
 * `sha256sum -c SHA256SUMS` checks the files. Needs the packages of `npm ci`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

const PROJECT = dirname(import.meta.dirname);
const SUMS = 'SHA256SUMS';
const target = resolve(process.argv[2] ?? 'release');
const { name: scoped, version } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'));
const name = scoped.replace('@', '').replace('/', '-'); // as npm names the tarball
const revision = output('git', ['rev-parse', 'HEAD'], PROJECT);

mkdirSync(target, { recursive: true });
if (readdirSync(target).length > 0) throw new Error(`${target} is not empty`);
const temporary = mkdtempSync(join(tmpdir(), 'release-'));
try {
  const first = buildIn(join(temporary, 'first'));
  const second = buildIn(join(temporary, 'second'));
  const [sums, repeated] = [first, second].map((folder) => sumsOf(folder));
  if (sums !== repeated) throw new Error(`Two builds differ:\n${sums}\n${repeated}`);
  cpSync(first, target, { recursive: true });
  buildImage(join(temporary, 'second/source'));
  writeFileSync(join(target, SUMS), sumsOf(target));
  process.stdout.write(`Built ${revision} twice with the same bytes:\n${readFileSync(join(target, SUMS), 'utf8')}`);
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

/** Builds the last commit in a folder of its own. @param {string} folder @returns the folder of the results */
function buildIn(folder) {
  const [source, results] = [join(folder, 'source'), join(folder, 'results')];
  mkdirSync(results, { recursive: true });
  output('git', ['clone', '--quiet', PROJECT, source], PROJECT);
  output('git', ['checkout', '--quiet', revision], source);
  output('cp', ['--archive', '--reflink=auto', join(PROJECT, 'node_modules'), source], PROJECT);
  output(
    'npm',
    ['pack', '--silent', '--workspaces', '--include-workspace-root', '--pack-destination', results],
    source,
  );
  writeFileSync(join(results, `${name}-${version}.cdx.json`), sbomOf(source));
  return results;
}

/** The SBOM without its random number, and with the time of the commit. @param {string} source */
function sbomOf(source) {
  const { serialNumber: _, ...sbom } = JSON.parse(output('npm', ['run', '--silent', 'sbom'], source));
  sbom.metadata.timestamp = output('git', ['log', '-1', '--format=%cI'], source);
  return `${JSON.stringify(sbom, undefined, 2)}\n`;
}

/** @param {string} source */
function buildImage(source) {
  const tag = `${name}:${version}`;
  const file = join(target, `${name}-${version}.image.tar`);
  for (const parameters of [
    ['build', '--quiet', '--build-arg', `REVISION=${revision}`, '--tag', tag, source],
    ['save', '--output', file, tag],
  ]) {
    const { status, stderr, error } = spawnSync('docker', parameters, { encoding: 'utf8' });
    if (status === 0) continue;
    const [reason] = (error?.message ?? stderr).trim().split('\n').slice(-1);
    console.error(`No image: docker ${parameters[0]} failed (${reason})`);
    return;
  }
}

/** The lines of `sha256sum`. @param {string} folder */
function sumsOf(folder) {
  const files = readdirSync(folder).filter((file) => file !== SUMS);
  const sumOf = (/** @type {string} */ file) =>
    createHash('sha256')
      .update(readFileSync(join(folder, file)))
      .digest('hex');
  return files
    .sort()
    .map((file) => `${sumOf(file)}  ${file}\n`)
    .join('');
}

/** @param {string} program @param {string[]} parameters @param {string} cwd */
function output(program, parameters, cwd) {
  return execFileSync(program, parameters, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}
