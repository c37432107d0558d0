import { type Service, startService } from './bootstrap.js';
import { loadExtension } from './load-extension.js';
import type { Configuration } from './platform/configuration/configuration.js';
import { assertDatabaseHasContent, isDatabaseLost, withoutCredentials } from './platform/configuration/database-url.js';
import { loadServiceConfiguration } from './platform/configuration/load-configuration.js';
import { serviceLog } from './platform/logging/log.js';
import { VERSION } from './platform/version.js';
import type { Extension } from './token/extension.js';

const STOP_TIMEOUT_MS = 9_500;
/** How long the process still serves after SIGTERM, until the cluster sends its requests to other processes. */
const PRE_STOP_DELAY_MS = 2_000;
/** Short, so that few requests wait for the collection. */
const STARTUP_GC_DELAY_MS = 500;

/**
 * Runs the service as a process, by default with the extension that EXTENSION names. Reads the environment, serves until
 * SIGTERM or SIGINT, and then ends the process. Resolves when all ports serve. If the start fails, the reason goes to
 * stderr and the exit code is 1.
 */
export async function runService(extension?: Extension): Promise<Service> {
  process.umask(0o077); // new files and folders are for the user of the process only
  try {
    return await run(await loadServiceConfiguration(), extension ?? (await loadExtension()));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(1);
  }
}

async function run(configuration: Configuration, extension: Extension): Promise<Service> {
  await assertDatabaseHasContent(configuration);
  let service: Service | undefined;
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => stop(service, signal === 'SIGTERM' ? PRE_STOP_DELAY_MS : 0));
  const ownRegistry = configuration.REGISTRY_FILE ? undefined : extension.registryFile?.(configuration);
  if (ownRegistry) configuration.REGISTRY_FILE = ownRegistry;
  process.stderr.on('error', () => undefined); // a closed stderr must not end the process
  const log = serviceLog(configuration);
  process.once('exit', () => log.flush?.());
  log.logger.info(`customer-authorization-service ${VERSION}`);
  for (const warning of configuration.warnings) log.logger.warn(warning);
  if (isDatabaseLost(configuration)) log.logger.warn(lostDatabaseMessage(configuration));
  service = await startService({
    ...extension,
    configuration,
    log,
    hasOwnRegistry: ownRegistry !== undefined,
    isProcess: true,
  });
  log.logger.info(listeningMessage(configuration, service));
  // without the warning, an operator learns it from the first token, and a later change ends all tokens
  if (configuration.NODE_ENV === 'production' && configuration.TOKEN_REGION === 'dev')
    log.logger.warn('TOKEN_REGION: all tokens begin with dev:, the default');
  setTimeout(collectStartupGarbage, STARTUP_GC_DELAY_MS).unref();
  return service;
}

function lostDatabaseMessage({ DATABASE_URL }: Configuration): string {
  const created = `the database ${withoutCredentials(DATABASE_URL)} does not exist and is created, but its signing keys exist`;
  return `${created}; if this is not the first start, stop the service and restore a backup`;
}

function listeningMessage(configuration: Configuration, service: Service): string {
  const { AUTH_URL, HOST = 'all addresses' } = configuration;
  const ports = [`port ${service.port} for callers (${AUTH_URL})`, `port ${service.managementPort} for the cluster`];
  if (service.adminPort !== undefined) ports.push(`port ${service.adminPort} for administration`);
  return `listening on ${HOST}: ${ports.join(', ')}`;
}

/**
 * Frees 20 MB that the start leaves behind, in 65 ms (docs/performance.md). V8 would keep this memory under load. `gc`
 * exists only if node has the option `--expose-gc`, as in the image.
 */
function collectStartupGarbage(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

function stop(service: Service | undefined, lingerMs: number): void {
  setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref();
  if (!service) process.exit(0); // the service does not serve yet
  service.stop(lingerMs).then(
    () => process.exit(0),
    () => process.exit(1),
  );
}
