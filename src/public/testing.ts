/**
 * The exports for testing a grant or a route in vitest: `customer-authorization-service/testing`. They need the packages vitest,
 * ajv and ajv-formats, which the service itself does not need.
 */

export { describeGrant } from '../testing/describe-grant.js';
export type { Customer, GrantKit, GuessableParameter, TestEnvironment } from '../testing/grant-kit.js';
export type { TestResponse } from '../testing/http-client.js';
export type { RegistryDocument } from '../testing/registry-file.js';
export { describeRoute } from '../testing/routes/describe-route.js';
export type { RouteKit, RouteRequest } from '../testing/routes/route-kit.js';
export { testEnvironmentOf } from '../testing/test-environment.js';
export { startTestService, type TestService, type TestServiceOptions } from '../testing/test-service.js';
