import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/**
 * Builds the service and the try-it page before the tests if a source has changed, because they load the built files.
 */
export default function setup(): void {
  execFileSync(process.execPath, [join(import.meta.dirname, '../../scripts/build.js'), '--try-it'], {
    stdio: 'inherit',
  });
}
