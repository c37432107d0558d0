import { Injectable } from '@nestjs/common';
import { requestContext } from '../../platform/request-context/request-context.js';
import { AuthorizationCodes } from '../../redemption/authorization-codes.js';
import type { Agent } from '../../registry/agent.entity.js';
import { AgentTokenIssuer, grantedScope } from '../agent-token-issuer.js';
import type { AuthorizationRequest } from './authorization-request.js';
import { errorParameters, type ResponseParameters } from './authorization-response.js';
import { Consents } from './consents.js';

/** A response to the client, or scopes to which the agent must consent first. */
export type Decision = { response: ResponseParameters } | { consentTo: string };

/** Decides on the requests of agents, and issues the codes and tokens that they grant (protocol §6.5). */
@Injectable()
export class Authorizer {
  constructor(
    private readonly codes: AuthorizationCodes,
    private readonly tokens: AgentTokenIssuer,
    private readonly consents: Consents,
  ) {}

  /** A public application needs consent once, an application that can be impersonated needs it for each request. */
  async decide(request: AuthorizationRequest, agent: Agent): Promise<Decision> {
    const { client, prompt } = request;
    if (!client.usableIn(agent.organizationId))
      return deny('access_denied', 'client_id: belongs to another organization');
    const scope = grantedScope(request.scope, client.scopes, agent.scopes);
    if (scope === '')
      return deny('invalid_scope', 'scope: the request, the client and the agent have no scope in common');
    const needsConsent =
      prompt.includes('consent') ||
      canBeImpersonated(request) ||
      (client.organizationId === null && !(await this.consents.covers(agent, client.clientId, scope)));
    if (!needsConsent) return { response: await this.issueGrant(request, agent, scope) };
    if (prompt.includes('none')) return deny('consent_required', 'prompt: none');
    return { consentTo: scope };
  }

  /** The agent is asked again if the request now needs consent to a scope that the page has not `shown`. */
  async allow(request: AuthorizationRequest, agent: Agent, shown: string[]): Promise<Decision> {
    const decision = await this.decide(request, agent);
    if ('response' in decision || !decision.consentTo.split(' ').every((scope) => shown.includes(scope)))
      return decision;
    const { client } = request;
    if (!canBeImpersonated(request)) await this.consents.remember(agent, client, decision.consentTo);
    this.consents.recordAudit(agent.id, client.clientId, decision.consentTo);
    return { response: await this.issueGrant(request, agent, decision.consentTo) };
  }

  private async issueGrant(request: AuthorizationRequest, agent: Agent, scope: string): Promise<ResponseParameters> {
    const { client, redirectUri, codeChallenge } = request;
    const { clientId } = client;
    const { id: agentId, organizationId, generation } = agent;
    if (request.responseType === 'token') {
      requestContext.set({ grant: 'implicit' });
      const token = await this.tokens.issue({ agentId, organizationId, clientId, scope }, generation);
      return { ...token, expires_in: String(token.expires_in) };
    }
    const content = { clientId, agentId, organizationId, scope, redirectUri, codeChallenge, generation };
    return { code: await this.codes.issue(content) };
  }
}

/**
 * Whether another program on the device could receive the response: the client has no secret, and any program may claim
 * a private-use scheme or a loopback port (RFC 6749 §10.2, RFC 8252 §8.6).
 */
function canBeImpersonated({ client, redirectUri }: AuthorizationRequest): boolean {
  return client.clientType === 'native' && client.secretHash === null && new URL(redirectUri).protocol !== 'https:';
}

export function deny(error: string, hint: string): Decision {
  return { response: errorParameters(error, hint) };
}
