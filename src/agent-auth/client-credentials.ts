import { Injectable, type OnModuleInit } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import type { Agent } from '../registry/agent.entity.js';
import { Agents } from '../registry/agents.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import { GrantSettingsClasses } from '../registry/grant-settings-classes.js';
import { AgentChangedError, AgentSessions } from '../session/agent/agent-sessions.js';
import { type AgentGrant, grantedScope } from './agent-token-issuer.js';

const NAME = 'client_credentials';

const ERRORS = {
  grantNotListed: () => OAuthError.unauthorizedClient(`grant_type: the client does not list ${NAME}`),
  noAgent: () => OAuthError.unauthorizedClient('client_id: the entry of the client names no agent of its organization'),
  invalidScope: () => OAuthError.invalidScope(),
};

/** Agent tokens for a client by its own credentials (RFC 6749 §4.4), for the agent that its entry names. */
@Injectable()
export class ClientCredentials implements OnModuleInit {
  constructor(
    private readonly agents: Agents,
    private readonly sessions: AgentSessions,
    private readonly settingsClasses: GrantSettingsClasses,
  ) {}

  onModuleInit(): void {
    this.settingsClasses.add(NAME, { organization: undefined, client: undefined }, { optIn: true });
  }

  /** @throws OAuthError `unauthorized_client`, `invalid_scope`; 503 if the agent changes meanwhile */
  async grant(client: ClientApplication, requestedScope: string | undefined) {
    if (!client.mayUse(NAME, true)) throw ERRORS.grantNotListed();
    const agent = await this.agentOf(client);
    const scope = grantedScope(requestedScope, client.scopes, agent.scopes);
    if (scope === '') throw ERRORS.invalidScope();
    const { clientId } = client;
    const grant: AgentGrant = { agentId: agent.id, organizationId: agent.organizationId, clientId, scope };
    const session = await this.sessions.ofClient(clientId, agent).catch((error: unknown) => {
      throw error instanceof AgentChangedError ? OAuthError.unavailable(error) : error;
    });
    return { grant, session };
  }

  /** A public client has no agent, and an agent may have moved to another organization. */
  private async agentOf({ agentId, organizationId, clientType }: ClientApplication): Promise<Agent> {
    const agent = agentId !== null && clientType === 'server' ? await this.agents.byId(agentId) : undefined;
    if (!agent || agent.organizationId !== organizationId) throw ERRORS.noAgent();
    return agent;
  }
}
