import { readFileSync } from 'node:fs';

const PACKAGE = new URL('../../package.json', import.meta.url);

/** The version of package.json. `scripts/version-everywhere.js` writes it to the image and the manifests. */
export const VERSION: string = JSON.parse(readFileSync(PACKAGE, 'utf8')).version;
