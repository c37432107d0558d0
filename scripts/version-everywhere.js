// @ts-check
/**
 * Writes the version of package.json to every other place that has it: the packages, the examples, the image's label,
 * the manifests, and the names of tarballs in documents. `npm version 1.2.0 --no-git-tag-version` runs it. With
 * `--check`, it names the files that have another version, and changes nothing.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const PROJECT = dirname(import.meta.dirname);
const { version } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'));
const NUMBER = String.raw`\d+\.\d+\.\d+`;
const PACKAGES = '@?customer-authorization[/-](?:service|conformance-kit|token-verifier|browser-client|try-it)';

/** Where a version follows a text that names it. @type {[files: string, text: string][]} */
const PLACES = [
  ['**/package.json', `^  "version": "`],
  ['**/package.json', `"${PACKAGES}": "`],
  ['*.md', `${PACKAGES}[-:]`],
  ['docs/llms.txt', `${PACKAGES}-`],
  ['*.md', String.raw`(?:\?ref=v|git diff v)`],
  ['Dockerfile', 'org.opencontainers.image.version="'],
  ['deploy/kubernetes/base/kustomization.yaml', '(?:app.kubernetes.io/version|newTag): "'],
];

const isCheck = process.argv.includes('--check');
const stale = new Set(PLACES.flatMap(([files, before]) => tracked(files).filter((path) => replace(path, before))));
if (isCheck && stale.size > 0) {
  console.error(`Not the version of package.json (${version}); run: node scripts/version-everywhere.js`);
  for (const path of stale) console.error(`  ${path}`);
  process.exitCode = 1;
}

/** @param {string} path @param {string} before @returns whether the file had another version */
function replace(path, before) {
  const text = readFileSync(join(PROJECT, path), 'utf8');
  const renewed = text.replaceAll(new RegExp(`(${before})${NUMBER}`, 'gm'), `$1${version}`);
  if (!isCheck) writeFileSync(join(PROJECT, path), renewed);
  return renewed !== text;
}

/** @param {string} files a pattern of git, whose `*` includes folders */
function tracked(files) {
  return execFileSync('git', ['ls-files', `:(glob)**/${files}`, files], { cwd: PROJECT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '' && path !== 'package-lock.json');
}
