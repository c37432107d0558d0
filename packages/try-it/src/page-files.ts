import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = join(import.meta.dirname, '../page');
/** Files of browser-client, which the build copies. */
const CLIENT_FILES = ['request-error.js', 'verifier.js'];
const MEDIA_TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** A script, stylesheet or image of the try-it page. */
export interface PageFile {
  type: string;
  text: string;
}

/** The files of the try-it page by name. A request can only name one of them, never a path. */
export function readPageFiles(): Map<string, PageFile> {
  const names = readdirSync(FOLDER).filter((name) => MEDIA_TYPES[extname(name)] !== undefined);
  const files = new Map(names.map((name) => [name, readPageFile(name, join(FOLDER, name))]));
  for (const name of CLIENT_FILES) files.set(name, readPageFile(name, join(FOLDER, '../dist', name)));
  return files.set('qr.js', readPageFile('qr.js', fileURLToPath(import.meta.resolve('qr'))));
}

function readPageFile(name: string, path: string): PageFile {
  return { type: MEDIA_TYPES[extname(name)] as string, text: readFileSync(path, 'utf8') };
}
