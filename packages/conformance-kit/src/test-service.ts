import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Extension, Service } from '@customer-authorization/service';
import type { AuditEntry, Configuration } from '@customer-authorization/service/grant';
import {
  type ConnectionLimits,
  type Log,
  loadConfiguration,
  startService,
} from '@customer-authorization/service/testing-host';
import { type HttpClient, httpClientOf } from './http-client.js';
import { writeKeySet } from './key-set-file.js';
import { kitRegistry, type Settings } from './kit-registry.js';
import { type RegistryDocument, writeRegistryFile } from './registry-file.js';
import { asService } from './service-context.js';
import { TestClock } from './test-clock.js';
import { createTestDatabase, type TestDatabase } from './test-database.js';
import { type Upstream, UpstreamServer } from './upstream.js';

/** The extension under test, and how its service starts. */
export interface TestServiceOptions extends Extension {
  /** The registry of the service. If omitted, the registry of the conformance kit. */
  registry?: RegistryDocument;
  /** The settings of the extension's grants in the registry of the conformance kit. */
  settings?: Settings;
  /** Environment variables in addition to those that a test service needs. */
  environment?: Record<string, string>;
  /** The system that a class of the extension calls. It runs as long as the service. */
  upstream?: Upstream | undefined;
  /** A database that is shared with another service. It is not deleted when this service stops. */
  database?: TestDatabase;
  /** The log of the service; stdout if omitted. @internal */
  log?: Log;
  /** The clock of another service. @internal */
  clock?: TestClock;
  /** Shorter timeouts and lower limits for connections. @internal */
  connections?: Partial<ConnectionLimits>;
}

/** The real service on random ports, with its own database and a clock that the test can set. */
export interface TestService extends Service, HttpClient {
  managementUrl: string;
  clock: TestClock;
  database: TestDatabase;
  /** The audit events of the service. */
  audit: AuditEntry[];
  /** The server in the place of `upstream`. @internal */
  upstream: UpstreamServer | undefined;
}

/**
 * Starts the service with the modules of an extension.
 *
 * @throws Error if the service does not start, because a grant or the registry is invalid
 */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const {
    settings,
    registry = kitRegistry(options, settings),
    environment,
    upstream,
    database: given,
    clock = TestClock.running(),
    ...extension
  } = options;
  const database = given ?? (await createTestDatabase());
  const system = upstream && (await UpstreamServer.start(upstream));
  const audit: AuditEntry[] = [];
  const remove = async () => {
    system?.stop();
    if (!given) await database.remove();
  };
  try {
    provideCustomerKey(extension.customerKeyFile, database.folder);
    const configuration = configurationOf(database, registry, environment);
    const sink = { write: (entry: AuditEntry) => void audit.push(entry) };
    const limitAttempts = environment?.RATE_LIMIT !== undefined;
    const service = await asService(() =>
      startService({ configuration, clock, audit: sink, limitAttempts, ...extension }),
    );
    const url = `http://127.0.0.1:${service.port}`;
    const managementUrl = `http://127.0.0.1:${service.managementPort}`;
    const stop = async () => {
      await service.stop();
      await remove();
    };
    return { ...service, ...httpClientOf(url), managementUrl, clock, database, audit, upstream: system, stop };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The files that the kit has named in variables. */
const providedKeys = new Set<string | undefined>([undefined]);

/** Names a file with a key of customers, unless the test has set the variable, also to an empty text. */
function provideCustomerKey(variable: string | undefined, folder: string): void {
  if (variable === undefined || !providedKeys.has(process.env[variable])) return;
  const path = join(folder, 'kit-customer-key');
  writeFileSync(path, 'a key that all services of a test share');
  providedKeys.add(path);
  process.env[variable] = path;
}

function configurationOf(
  { url, folder }: TestDatabase,
  registry: RegistryDocument,
  environment?: Record<string, string>,
): Configuration {
  return loadConfiguration({
    DATABASE_URL: url,
    DATA_DIR: folder,
    MIGRATE_ON_START: 'true',
    SIGNING_KEYS_FILE: writeKeySet(join(folder, 'keys.json')),
    REGISTRY_FILE: writeRegistryFile(join(folder, 'registry.yaml'), registry),
    AUTH_URL: 'https://auth.example',
    HOST: '127.0.0.1',
    PORT: '0',
    MANAGEMENT_PORT: '0',
    LOG_LEVEL: 'fatal',
    RATE_LIMIT: 'off',
    ...environment,
  });
}
