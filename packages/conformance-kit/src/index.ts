/**
 * Tests a grant or a route in vitest for the mistakes that only its author can make. The service that is tested must
 * have the version of this package.
 */

export { describeGrant, describeRoute } from './describe.js';
export type { TestResponse } from './http-client.js';
export type { GrantKit, PendingProof, RouteKit, RouteRequest } from './kit.js';
export type { Settings } from './kit-registry.js';
export type { RegistryDocument } from './registry-file.js';
export { type Customer, type TestEnvironment, testEnvironmentOf } from './test-environment.js';
export { startTestService, type TestService, type TestServiceOptions } from './test-service.js';
export type { Upstream } from './upstream.js';
