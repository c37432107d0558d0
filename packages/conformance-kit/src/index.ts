/**
 * Tests a grant or a route in vitest against the rules of the service. The service that is tested must have the version of
 * this package.
 */

export { describeGrant } from './describe-grant.js';
export type { Customer, GrantKit, GuessableParameter, PendingProof, TestEnvironment } from './grant-kit.js';
export type { TestResponse } from './http-client.js';
export type { RegistryDocument } from './registry-file.js';
export { describeRoute } from './routes/describe-route.js';
export type { RouteKit, RouteRequest } from './routes/route-kit.js';
export { testEnvironmentOf } from './test-environment.js';
export { startTestService, type TestService, type TestServiceOptions } from './test-service.js';
