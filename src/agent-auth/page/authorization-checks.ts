import type { Registry } from '../../registry/registry.js';
import type { AuthorizationParameters } from './authorization-query.js';
import { identifyClient } from './checks/client.js';
import { flowViolation } from './checks/flow.js';
import { pkceViolation } from './checks/pkce.js';
import { promptViolation } from './checks/prompt.js';
import { assertRedirectUriRegistered } from './checks/redirect-uri.js';
import { responseTypeViolation } from './checks/response-type.js';
import { repeatedParameter } from './checks/single-value.js';
import { stateViolation } from './checks/state.js';

/**
 * The checks whose failure is shown to the agent on an error page. Until they pass, the redirect URI may be an
 * attacker's, so the page does not redirect to it (RFC 6749 §4.1.2.1).
 */
export const CLIENT_CHECKS: ((parameters: AuthorizationParameters, registry: Registry) => void)[] = [
  identifyClient,
  assertRedirectUriRegistered,
];

/**
 * The checks whose failure is reported to the client, as `invalid_request` with a hint. They run in this order, and the
 * first failure is reported. `Authorizer.decide` then makes the checks that depend on the agent.
 */
export const REQUEST_CHECKS: ((parameters: AuthorizationParameters) => string | undefined)[] = [
  repeatedParameter,
  responseTypeViolation,
  stateViolation,
  pkceViolation,
  promptViolation,
  flowViolation,
];
