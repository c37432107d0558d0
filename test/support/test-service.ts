import {
  startTestService as startService,
  type TestService,
  type TestServiceOptions,
} from '../../src/testing/test-service.js';
import { testRegistry } from './test-registry.js';

export { type HttpClient, httpClientOf, request, type TestResponse } from '../../src/testing/http-client.js';
export type { TestService };

/** Starts a service with the registry of the tests. */
export function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  return startService({ registry: testRegistry(), ...options });
}
