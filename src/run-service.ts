import { mkdirSync } from 'node:fs';
import { type Service, startService } from './bootstrap.js';
import type { Extension } from './extension.js';
import type { Configuration } from './platform/configuration/configuration.js';
import { loadConfiguration } from './platform/configuration/load-configuration.js';
import { serviceLog } from './platform/logging/log.js';
import { demoRegistry } from './registry/demo-registry.js';
import { welcome, whereabouts } from './welcome.js';

const STOP_TIMEOUT_MS = 9_500;
/** Milliseconds in which the cluster learns that this process is not ready any more. */
const PRE_STOP_DELAY_MS = 2_000;
/** Milliseconds from the start to its tidying: few requests, if any, have found this process by then. */
const STARTUP_GC_DELAY_MS = 500;

/**
 * The service as a process, with what another team adds to it: reads the environment, serves until SIGTERM or SIGINT, and
 * ends the process. Resolves when both ports serve; a start that fails says why on stderr and ends with exit code 1.
 */
export async function runService(extension: Extension = {}): Promise<void> {
  try {
    await run(loadConfiguration(), extension);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(1);
  }
}

async function run(configuration: Configuration, extension: Extension): Promise<void> {
  let service: Service | undefined;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => stop(service, signal === 'SIGTERM' ? PRE_STOP_DELAY_MS : 0));
  const demo = isFirstRun(configuration);
  if (demo) {
    mkdirSync(configuration.DATA_DIR, { recursive: true, mode: 0o700 });
    configuration.REGISTRY_FILE = demoRegistry(configuration.DATA_DIR, configuration.AUTH_URL);
  }
  process.stderr.on('error', () => undefined); // nobody reads it: no reason to end
  const log = serviceLog(configuration);
  process.once('exit', () => log.flush());
  service = await startService({ ...extension, configuration, log });
  if (demo) process.stdout.write(welcome(configuration, service));
  else log.logger.info(whereabouts(configuration, service));
  setTimeout(collectStartupGarbage, STARTUP_GC_DELAY_MS).unref();
}

/** What loading has left is 20 MB; 65 ms free it at once, and load would not. Only where node has `--expose-gc`, as in the image. */
function collectStartupGarbage(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** Nothing is set up: the embedded database gets something to try the service with. */
function isFirstRun({ embedded, REGISTRY_FILE, NODE_ENV }: Configuration): boolean {
  return embedded && !REGISTRY_FILE && NODE_ENV !== 'production';
}

/** Whatever hangs, the process is gone before the cluster would kill it. */
function stop(service: Service | undefined, linger: number): void {
  setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
  if (!service) process.exit(0); // nothing was answered yet
  service.stop(linger).then(
    () => process.exit(0),
    () => process.exit(1),
  );
}
