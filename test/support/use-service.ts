import { DataSource, type ObjectLiteral, type Repository } from 'typeorm';
import { afterAll, afterEach, beforeAll, onTestFinished, vi } from 'vitest';
import type { TestServiceOptions } from '../../packages/conformance-kit/src/test-service.js';
import { bearer } from './authorization-headers.js';
import { cookieBody, TOKEN } from './cookie-grant.js';
import { manage } from './management-api.js';
import { startTestService, type TestResponse, type TestService } from './test-service.js';

/** The operator's token at the services of `useService`. */
export const ADMIN_TOKEN = 'operator-of-the-test-services-0123456789';
export const ADMIN_TOKENS = `operator:all:${ADMIN_TOKEN}`;
export const DAY_SECONDS = 86_400;

/** A service with the requests that many tests send. */
export interface UsedService extends TestService {
  /** Sends a request to the management port as the operator. */
  admin(method: string, path: string, body?: string | object): Promise<TestResponse>;
  /** Erases a customer as the operator. */
  erase(entityId: string): Promise<TestResponse>;
  /** Sends a cookie grant, with the cookies of a browser. */
  visit(cookie?: string, body?: object, path?: string): Promise<TestResponse>;
  /** The customer that the cookies of a browser lead to. */
  idOf(cookie: string, body?: object, path?: string): Promise<string>;
  /** The rows of a table. */
  rowsOf<Entity extends ObjectLiteral>(entity: new () => Entity): Repository<Entity>;
  passDays(days: number): void;
}

/**
 * Runs a service for the tests of a file, or of a `describe`. Its clock, its audit events and all spies are reset after
 * each test. The audit events of its start are removed.
 *
 * @param options of the service, or a function that makes them when the tests begin
 * @returns an object that is the service while the tests run
 */
export function useService(
  options: TestServiceOptions | (() => TestServiceOptions | Promise<TestServiceOptions>) = {},
): UsedService {
  const service = {} as UsedService;
  beforeAll(async () => {
    Object.assign(service, await start(typeof options === 'function' ? await options() : options));
    service.audit.length = 0;
  });
  afterEach(() => {
    vi.restoreAllMocks();
    service.clock.reset();
    service.audit.length = 0;
  });
  afterAll(() => service.stop?.());
  return service;
}

/** Starts a service for the current test. It stops after the test and its `afterEach`. */
export async function serviceOfTest(options: TestServiceOptions = {}): Promise<UsedService> {
  const service = await start(options);
  onTestFinished(() => service.stop());
  return service;
}

async function start({ environment, ...options }: TestServiceOptions): Promise<UsedService> {
  const started = await startTestService({ ...options, environment: { ADMIN_TOKENS, ...environment } });
  return { ...started, ...requestsTo(started) };
}

function requestsTo(service: TestService): Omit<UsedService, keyof TestService> {
  const admin: UsedService['admin'] = (method, path, body) => manage(service, method, path, bearer(ADMIN_TOKEN), body);
  const visit: UsedService['visit'] = (cookie, body = {}, path = TOKEN) =>
    service.post(path, cookieBody(body), cookie === undefined ? {} : { cookie });
  return {
    admin,
    erase: (entityId) => admin('DELETE', `/admin/customers/${entityId}`),
    visit,
    idOf: async (cookie, body, path) => (await visit(cookie, body, path)).body.entity_id,
    rowsOf: (entity) => service.application.get(DataSource).getRepository(entity),
    passDays: (days) => service.clock.advance({ seconds: days * DAY_SECONDS }),
  };
}
