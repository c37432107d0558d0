import { Agents, AgentTokenIssuer } from '@customer-authorization/service/testing-host';
import type { TestService } from './test-service.js';

/**
 * Signs an agent token that the service itself may not issue: neither the page nor the operator's command issues a
 * token with a scope or a client that the registry does not admit. Tests check that a grant rejects such a token.
 */
export async function signAgentToken(
  { application }: TestService,
  { email, clientId, scope }: { email: string; clientId: string; scope: string },
): Promise<string> {
  const agent = await application.get(Agents).byEmail(email);
  if (!agent) throw new Error(`no agent ${email}`);
  const { id: agentId, organizationId, generation } = agent;
  const grant = { agentId, organizationId, clientId, scope };
  return (await application.get(AgentTokenIssuer).issue(grant, generation)).access_token;
}
