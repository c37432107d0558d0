import {
  startTestService as startService,
  type TestService,
  type TestServiceOptions,
} from '../../packages/conformance-kit/src/test-service.js';
import { validateResponsesOf } from './response-validation.js';
import { testRegistry } from './test-registry.js';

export {
  type HttpClient,
  httpClientOf,
  request,
  type TestResponse,
} from '../../packages/conformance-kit/src/http-client.js';
export type { TestService };

/** Starts a service with the registry of the tests, whose responses are compared with the OpenAPI document. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const service = await startService({ registry: testRegistry(), ...options });
  const endValidation = validateResponsesOf(service, service.url, service.managementUrl);
  return { ...service, stop: (linger) => service.stop(linger).finally(endValidation) };
}
