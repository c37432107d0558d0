import { OAuthError } from '../../../oauth/oauth-error.js';
import { requestContext } from '../../../platform/request-context/request-context.js';
import type { Registry } from '../../../registry/registry.js';
import type { AuthorizationParameters } from '../authorization-query.js';
import { singleValue } from './single-value.js';

/** Finds the client with the requested `client_id`. */
export function identifyClient(parameters: AuthorizationParameters, registry: Registry): void {
  const client = registry.client(singleValue(parameters, 'client_id'));
  if (!client) throw OAuthError.invalidRequest('client_id: unknown');
  requestContext.set({ clientId: client.clientId });
  parameters.client = client;
}
