import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = join(import.meta.dirname, 'page');
const MEDIA_TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** The encoder of QR codes. The build copies it into the folder, so that the service needs no further dependency. */
const QR_ENCODER = 'qr.js';

/** A script, stylesheet or image of the try-it page. */
export interface PageFile {
  type: string;
  text: string;
}

/** The files of the try-it page by name. A request can only name one of them, never a path. */
export function readPageFiles(): Map<string, PageFile> {
  const names = readdirSync(FOLDER).filter((name) => MEDIA_TYPES[extname(name)] !== undefined);
  const files = new Map(names.map((name) => [name, readPageFile(name, join(FOLDER, name))]));
  // the sources, which tests run, use the development package
  if (!files.has(QR_ENCODER)) files.set(QR_ENCODER, readPageFile(QR_ENCODER, fileURLToPath(import.meta.resolve('qr'))));
  return files;
}

function readPageFile(name: string, path: string): PageFile {
  return { type: MEDIA_TYPES[extname(name)] as string, text: readFileSync(path, 'utf8') };
}
