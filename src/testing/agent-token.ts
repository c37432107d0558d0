import { AgentTokenIssuer } from '../agent-auth/agent-token-issuer.js';
import { Agents } from '../registry/agents.js';
import type { TestService } from './test-service.js';

export interface AgentTokenRequest {
  email: string;
  clientId: string;
  scope: string;
}

/**
 * An agent's token that the service itself may refuse to issue: neither the page nor the operator's command gives a
 * scope or a client that the registry does not admit. A test needs such a token to see that it gets nothing by it.
 */
export async function signAgentToken(
  { application }: TestService,
  { email, clientId, scope }: AgentTokenRequest,
): Promise<string> {
  const agent = await application.get(Agents).byEmail(email);
  if (!agent) throw new Error(`no agent ${email}`);
  const { id: agentId, organizationId, generation } = agent;
  const grant = { agentId, organizationId, clientId, scope, generation: generation ?? 0 };
  return application.get(AgentTokenIssuer).issue(grant).access_token;
}
