import { join } from 'node:path';
import type { AuditEntry } from '../audit/audit-event.js';
import { type Service, startService } from '../bootstrap.js';
import type { Extension } from '../extension.js';
import { loadConfiguration } from '../platform/configuration/load-configuration.js';
import type { ConnectionLimits } from '../platform/http/connection-limits.js';
import type { Log } from '../platform/logging/log.js';
import { validateFetchOf } from './fetch-validation.js';
import { type HttpClient, httpClientOf } from './http-client.js';
import { writeKeySet } from './key-set-file.js';
import { kitRegistry } from './kit-registry.js';
import { type RegistryDocument, writeRegistryFile } from './registry-file.js';
import { TestClock } from './test-clock.js';
import { createTestDatabase, type TestDatabase } from './test-database.js';

export interface TestServiceOptions extends Extension {
  /** Organizations, applications and agents; those of the conformance kit when left out. */
  registry?: RegistryDocument;
  /** Variables of the configuration beside those that a test service needs. */
  environment?: Record<string, string>;
  /** A database to share with another service; it stays when this service stops. */
  database?: TestDatabase;
  /** Where everything is told; stdout when left out. @internal */
  log?: Log;
  /** Shorter timeouts and lower limits for connections. @internal */
  connections?: Partial<ConnectionLimits>;
}

/** The real application on ports of its own, with a database of its own and a clock that the test moves. */
export interface TestService extends Service, HttpClient {
  managementUrl: string;
  clock: TestClock;
  database: TestDatabase;
  /** What the service has told its audit sink. */
  audit: AuditEntry[];
}

/**
 * Starts the service with another team's modules. Every answer that `fetch` gets from it is held against its OpenAPI
 * document: one that does not fit rejects.
 *
 * @throws Error when the service would not start: a faulty grant, a faulty registry
 */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const { registry = kitRegistry(), environment, database: given, ...extension } = options;
  const database = given ?? (await createTestDatabase());
  const clock = TestClock.running();
  const configuration = loadConfiguration({
    DATABASE_URL: database.url,
    DATA_DIR: database.folder,
    MIGRATE_ON_START: 'true',
    SIGNING_KEYS_FILE: writeKeySet(join(database.folder, 'keys.json')),
    REGISTRY_FILE: writeRegistryFile(join(database.folder, 'registry.yaml'), registry),
    AUTH_URL: 'https://auth.example',
    HOST: '127.0.0.1',
    PORT: '0',
    MANAGEMENT_PORT: '0',
    LOG_LEVEL: 'fatal',
    RATE_LIMIT: 'off',
    ...environment,
  });
  const audit: AuditEntry[] = [];
  const sink = { write: (entry: AuditEntry) => void audit.push(entry) };
  const remove = async () => {
    if (!given) await database.remove();
  };
  const service = await startService({ configuration, clock, audit: sink, ...extension }).catch(async (error) => {
    await remove();
    throw error;
  });
  const url = `http://127.0.0.1:${service.port}`;
  const managementUrl = `http://127.0.0.1:${service.managementPort}`;
  validateFetchOf(service, url, managementUrl);
  return {
    ...service,
    ...httpClientOf(url),
    managementUrl,
    clock,
    database,
    audit,
    stop: async () => {
      await service.stop();
      await remove();
    },
  };
}
