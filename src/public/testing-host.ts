/**
 * What the conformance kit needs of the service that it tests, in addition to the exports of `service.ts` and
 * `grant.ts`: `@customer-authorization/service/testing-host`. It is for the kit of the same version only. Any version
 * may change it, so no other package imports it (docs/decisions/0018).
 */

import passportOfProcess from 'passport';

export { generateKey } from '../access-token/key-set.js';
export { AgentTokenIssuer } from '../agent-auth/agent-token-issuer.js';
export { startService } from '../bootstrap.js';
export { type ObjectSchema, schemaOf } from '../discovery/openapi/schemas.js';
export { type Route, routesOf } from '../http/routes/declared-routes.js';
export { CustomerErasure } from '../identity/customer-erasure.js';
export { Purge } from '../identity/purge.js';
export { Limits } from '../oauth/limits.js';
export { readParameters } from '../oauth/parameters.js';
export { loadConfiguration } from '../platform/configuration/load-configuration.js';
export { DEFAULT_LIMITS } from '../platform/configuration/rate-limit-rule.js';
export type { ConnectionLimits } from '../platform/http/listener.js';
export type { Log } from '../platform/logging/log.js';
export { declaredProperties } from '../platform/validation/validation.js';
export { Agents } from '../registry/agents.js';
export { GrantDecorator, type GrantMetadata } from '../token/grant.js';

/** The one object of passport in a process. An `object`, so that the declarations do not need those of passport. */
export const passport: object = passportOfProcess;
