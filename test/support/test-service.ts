import { validatedFetch } from '../../packages/conformance-kit/src/response-validation.js';
import { SharedPatch } from '../../packages/conformance-kit/src/shared-patch.js';
import {
  startTestService as startService,
  type TestService,
  type TestServiceOptions,
} from '../../packages/conformance-kit/src/test-service.js';
import { testRegistry } from './test-registry.js';

export {
  type HttpClient,
  httpClientOf,
  request,
  type TestResponse,
} from '../../packages/conformance-kit/src/http-client.js';
export type { TestService };

/** Compares the responses that tests get by `fetch` with the OpenAPI document, while a service runs. */
const patch = new SharedPatch(
  globalThis,
  'fetch',
  (fetch) =>
    (...parameters: Parameters<typeof globalThis.fetch>) =>
      validatedFetch(fetch as typeof globalThis.fetch, ...parameters),
);

/** Starts a service with the registry of the tests. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const service = await startService({ registry: testRegistry(), ...options });
  const release = patch.acquire();
  return { ...service, stop: (linger) => service.stop(linger).finally(release) };
}
