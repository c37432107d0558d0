/**
 * The scopes that an agent grants an application: the requested scopes that both the application and the agent have
 * (protocol §6.6). A request without scopes requests all scopes of the application.
 *
 * @param requestedScope scopes separated by spaces (RFC 6749 §3.3)
 * @returns scopes separated by spaces; empty if there is no common scope
 */
export function grantedScope(requestedScope: string | undefined, ofClient: string[], ofAgent: string[]): string {
  const requested = requestedScope === undefined ? ofClient : requestedScope.split(' ').filter((scope) => scope !== '');
  return [...new Set(requested)].filter((scope) => ofClient.includes(scope) && ofAgent.includes(scope)).join(' ');
}
