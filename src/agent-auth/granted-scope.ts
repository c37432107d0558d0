/**
 * What an agent grants an application: what was asked for (left out: all the application is registered for), as far as
 * the application is registered for it and the agent has it (protocol §6.6).
 *
 * @param asked scopes separated by spaces (RFC 6749 section 3.3)
 * @returns scopes separated by spaces; empty when they have nothing in common
 */
export function grantedScope(asked: string | undefined, ofClient: string[], ofAgent: string[]): string {
  const wanted = asked === undefined ? ofClient : asked.split(' ').filter((scope) => scope !== '');
  return [...new Set(wanted)].filter((scope) => ofClient.includes(scope) && ofAgent.includes(scope)).join(' ');
}
