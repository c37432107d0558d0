import { assertAgent } from '../../bearer/principal.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import type { TokenRequest } from '../token-request.js';
import type { TokenServices } from '../token-services.js';

/** A grant that declares `agentScope` requires the bearer token of an agent with this scope. */
export function authenticateAgent(request: TokenRequest, { bearer }: TokenServices): void | Promise<void> {
  const { agentScope } = request.grant;
  if (agentScope === undefined) return;
  return bearer.authenticate(request.http).then((principal) => {
    const agent = assertAgent(principal);
    if (!agent.scopes.includes(agentScope)) throw OAuthError.insufficientScope(agentScope);
    request.agent = agent;
  });
}

/** An agent acts in its own organization only. */
export function assertOrganizationOfAgent({ agent, organizationId }: TokenRequest): void {
  if (agent && organizationId !== agent.organizationId)
    throw OAuthError.invalidRequest('organization_id: must be the organization of the agent');
}
