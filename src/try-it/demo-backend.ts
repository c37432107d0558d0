import { Injectable } from '@nestjs/common';
import { AgentTokenIssuer } from '../agent-auth/agent-token-issuer.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { CUSTOMERS_OWN } from '../oauth/scopes.js';
import { Agents } from '../registry/agents.js';
import { DEMO } from '../registry/demo-registry.js';

/** A request that the demo backend sent, and its response. */
export interface BackendExchange {
  /** The request has a placeholder in place of the agent token, because a browser must never have the token. */
  request: { method: string; url: string; headers: Record<string, string>; body: object };
  response: { status: number; headers: Record<string, string>; body: object };
  /** The payload of the agent token, without the signature. */
  agentTokenClaims: object;
}

const TIMEOUT_MS = 5_000;
const PLACEHOLDER = 'Bearer <the agent token, which stays in the backend>';
const SHOWN_HEADERS = ['content-type', 'cache-control', 'retry-after', 'www-authenticate', 'x-request-id'];
const CONTENT_TYPE = 'application/json';

/** Acts as the backend of the demo organization: it has an agent token and calls the service over HTTP. */
@Injectable()
export class DemoBackend {
  constructor(
    private readonly agents: Agents,
    private readonly issuer: AgentTokenIssuer,
  ) {}

  /**
   * Gets a customer token for a user of the organization.
   *
   * @param url the URL of the token endpoint
   */
  async customerOf(externalId: string, url: string): Promise<BackendExchange> {
    const token = await this.agentToken();
    const body = {
      grant_type: 'agent_token',
      client_id: DEMO.serverClientId,
      response_type: 'token',
      external_id: externalId,
    };
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': CONTENT_TYPE, Authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return {
      request: {
        method: 'POST',
        url: new URL(url).pathname,
        headers: { 'Content-Type': CONTENT_TYPE, Authorization: PLACEHOLDER },
        body,
      },
      response: {
        status: response.status,
        headers: shownHeaders(response.headers),
        body: (await response.json()) as object,
      },
      agentTokenClaims: claimsOf(token),
    };
  }

  /** A token as the command `agent-token` issues it. */
  private async agentToken(): Promise<string> {
    const agent = await this.agents.byEmail(DEMO.agentEmail);
    if (!agent) throw OAuthError.notFound();
    const { id: agentId, organizationId, generation } = agent;
    const grant = { agentId, organizationId, clientId: DEMO.serverClientId, scope: CUSTOMERS_OWN };
    return this.issuer.issue({ ...grant, generation: generation ?? 0 }).access_token;
  }
}

/** The headers that a caller needs. The page shows the same of its own requests. */
function shownHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => SHOWN_HEADERS.includes(name)));
}

function claimsOf(token: string): object {
  return JSON.parse(Buffer.from(token.split('.')[1] as string, 'base64url').toString());
}
