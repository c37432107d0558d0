// @ts-check
/**
 * `npm run check:packages`: builds and packs each package of packages/, and checks the tarball as its users see it:
 * the manifest with publint, and the types of each entry point with Are the types wrong. Both check ES modules only.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

const PACKAGES = join(dirname(import.meta.dirname), 'packages');
/** Problems of consumers that load CommonJS, which the packages do not support. */
const UNSUPPORTED_RESOLUTIONS = ['node16-cjs'];
/** Packages for projects that resolve as this one does. The others also support `moduleResolution: node`. */
const OF_THIS_PROJECT = ['conformance-kit', 'try-it'];

const violations = [];
for (const name of readdirSync(PACKAGES)) violations.push(...(await violationsOf(name)));
for (const violation of violations) console.error(violation);
if (violations.length > 0) process.exitCode = 1;

/** @param {string} name */
async function violationsOf(name) {
  const folder = mkdtempSync(join(tmpdir(), 'check-package-'));
  try {
    const tarball = pack(join(PACKAGES, name), folder);
    const { messages, pkg } = await publint({ pack: { tarball: tarball.buffer }, strict: true });
    const { problems } = types(await checkPackage(createPackageFromTarballData(tarball)));
    return [
      ...messages.map((message) => `${name}: ${formatMessage(message, pkg)}`),
      ...problems
        .filter((problem) => isSupported(name, problem))
        .map((problem) => `${name}: ${JSON.stringify(problem)}`),
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Builds the package too, by its script `prepack`. @param {string} source @param {string} target */
function pack(source, target) {
  execFileSync('npm', ['pack', '--silent', '--pack-destination', target], { cwd: source, stdio: 'pipe' });
  const [tarball = ''] = readdirSync(target);
  return new Uint8Array(readFileSync(join(target, tarball)));
}

/** @param {import('@arethetypeswrong/core').CheckResult} result */
function types(result) {
  if (!result.types) throw new Error(`${result.packageName} has no types`);
  return result;
}

/** @param {string} name @param {import('@arethetypeswrong/core').Problem} problem */
function isSupported(name, problem) {
  const unsupported = [...UNSUPPORTED_RESOLUTIONS, ...(OF_THIS_PROJECT.includes(name) ? ['node10'] : [])];
  return !('resolutionKind' in problem && unsupported.includes(problem.resolutionKind));
}
