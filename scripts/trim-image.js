// @ts-check
/**
 * `node trim-image.js FOLDER`: deletes the files that a running service never reads: source maps, type declarations,
 * TypeScript sources and Markdown. Licenses stay. The Dockerfile uses it.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const UNUSED = /(\.map|\.[cm]?ts|\.tsbuildinfo|\.md|\.markdown|\.flow)$/i;
const LICENSE = /^(licen[cs]e|notice|copying|copyright|patents)/i;

/** Deletes the unused files below a folder. Returns their number. @param {string} folder */
export function trim(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  const unused = files.filter((file) => file.isFile() && UNUSED.test(file.name) && !LICENSE.test(file.name));
  for (const { parentPath, name } of unused) rmSync(join(parentPath, name));
  return unused.length;
}

if (import.meta.filename === process.argv[1]) {
  const [, , folder] = process.argv;
  if (!folder) throw new Error('usage: node trim-image.js FOLDER');
  console.log(`deleted ${trim(folder)} files`);
}
