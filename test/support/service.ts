import { join } from 'node:path';
import type { Type } from '@nestjs/common';
import type { AuditEntry } from '../../src/audit/audit-event.js';
import { type Service, startService } from '../../src/bootstrap.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { checkAnswersOf } from './check-answers.js';
import { writeKeySet } from './keys.js';
import { MovingClock } from './moving-clock.js';
import { type RegistryDocument, writeRegistry } from './registry.js';
import { createTestDatabase, type TestDatabase } from './test-database.js';

export interface TestServiceOptions {
  registry?: RegistryDocument;
  /** Variables of the configuration beside those that a test service needs. */
  environment?: Record<string, string>;
  /** Another team's grants. */
  modules?: Type[];
  /** A database to share with another service; it stays when this service stops. */
  database?: TestDatabase;
}

/** Calls a service by the address of its public port. */
export interface Caller {
  url: string;
  /** Sends a POST; an object as JSON, a text as it is. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  send(method: string, path: string, headers?: Record<string, string>): Promise<Answer>;
}

/** The real application on ports of its own, with a database of its own and a clock that the test moves. */
export interface TestService extends Service, Caller {
  managementUrl: string;
  clock: MovingClock;
  database: TestDatabase;
  /** What the service has told its audit sink. */
  audit: AuditEntry[];
}

export interface Answer {
  status: number;
  headers: Headers;
  /** The `Set-Cookie` lines. */
  cookies: string[];
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it
  body: any;
}

export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const database = options.database ?? (await createTestDatabase());
  const clock = new MovingClock();
  const configuration = loadConfiguration({
    DATABASE_URL: database.url,
    DATA_DIR: database.folder,
    MIGRATE_ON_START: 'true',
    SIGNING_KEYS_FILE: writeKeySet(join(database.folder, 'keys.json')),
    REGISTRY_FILE: writeRegistry(join(database.folder, 'registry.yaml'), options.registry),
    AUTH_URL: 'https://auth.example',
    HOST: '127.0.0.1',
    PORT: '0',
    MANAGEMENT_PORT: '0',
    LOG_LEVEL: 'fatal',
    RATE_LIMIT: 'off',
    ...options.environment,
  });
  const audit: AuditEntry[] = [];
  const sink = { write: (entry: AuditEntry) => void audit.push(entry) };
  const service = await startService({ configuration, clock, modules: options.modules ?? [], audit: sink });
  const url = `http://127.0.0.1:${service.port}`;
  const managementUrl = `http://127.0.0.1:${service.managementPort}`;
  checkAnswersOf(service, url, managementUrl);
  return {
    ...service,
    ...callerOf(url),
    managementUrl,
    clock,
    database,
    audit,
    stop: async () => {
      await service.stop();
      if (!options.database) await database.remove();
    },
  };
}

export function callerOf(url: string): Caller {
  return {
    url,
    post: (path, body, headers = {}) =>
      request(url + path, { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) }),
    send: (method, path, headers = {}) => request(url + path, { method, headers }),
  };
}

export async function request(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, { redirect: 'manual', ...init });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== '';
  return {
    status: response.status,
    headers: response.headers,
    cookies: response.headers.getSetCookie(),
    text,
    body: isJson ? JSON.parse(text) : undefined,
  };
}
