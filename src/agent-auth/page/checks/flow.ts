import type { AuthorizationParameters } from '../authorization-query.js';
import { hasOrigin } from './redirect-uri.js';

/** `flow=button` sends the response by postMessage, which needs the origin of the receiving page. */
export function flowViolation(parameters: AuthorizationParameters): string | undefined {
  const flow = parameters.value('flow');
  if (flow !== undefined && flow !== 'button' && flow !== 'redirect') return 'flow: must be button or redirect';
  return flow === 'button' && !hasOrigin(parameters.redirectUri)
    ? 'flow: button needs an http(s) redirect_uri'
    : undefined;
}
