import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Builds the service before the tests if a source has changed, because they load it from `dist/`. */
export default function setup(): void {
  execFileSync(process.execPath, [join(import.meta.dirname, '../../scripts/build.js')], { stdio: 'inherit' });
}
