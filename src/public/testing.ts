/**
 * What another team tests its grant with, in vitest: `customer-authorization-service/testing`. It needs the packages vitest,
 * ajv and ajv-formats, which the service itself does not.
 */

export { describeGrant } from '../testing/describe-grant.js';
export type { Customer, GrantKit, TestEnvironment } from '../testing/grant-kit.js';
export type { TestResponse } from '../testing/http-client.js';
export type { RegistryDocument } from '../testing/registry-file.js';
export { startTestService, type TestService, type TestServiceOptions } from '../testing/test-service.js';
