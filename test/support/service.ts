import {
  startTestService as startService,
  type TestService,
  type TestServiceOptions,
} from '../../src/testing/service.js';
import { testRegistry } from './registry.js';

export { type Answer, type Caller, callerOf, request } from '../../src/testing/caller.js';
export type { TestService };

/** The service of our own tests, which knows their cast. */
export function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  return startService({ registry: testRegistry(), ...options });
}
