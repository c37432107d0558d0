import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { AccessTokens } from '../access-token/access-tokens.js';
import { Audit, party } from '../platform/audit/audit.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { uuidv7 } from '../platform/uuid.js';
import { ApiEnum, ApiInteger, ApiString } from '../platform/validation/validation.js';
import { AgentSessions } from '../session/agent/agent-sessions.js';

/**
 * The different values of a list that is delimited by spaces, such as a scope (RFC 6749 §3.3). The grammar has one
 * space between two values. More spaces delimit the same values, so they are accepted.
 */
export function spaceDelimited(list: string): string[] {
  return [...new Set(list.split(' ').filter((value) => value !== ''))];
}

/**
 * The requested scopes that both the application and the agent have (protocol §6.6); by default all of the application.
 * The result is empty if there is no common scope.
 */
export function grantedScope(requestedScope: string | undefined, ofClient: string[], ofAgent: string[]): string {
  const requested = requestedScope === undefined ? [...new Set(ofClient)] : spaceDelimited(requestedScope);
  return requested.filter((scope) => ofClient.includes(scope) && ofAgent.includes(scope)).join(' ');
}

export interface AgentGrant {
  agentId: string;
  organizationId: string;
  clientId: string;
  /** Scopes separated by spaces. */
  scope: string;
}

/** The part of a token response that describes the access token (RFC 6749 §4.2.2, §5.1). */
export class AgentTokenResponse {
  @ApiString('The agent access token. Send it as `Authorization: Bearer`, with its prefix.', EXAMPLE.accessToken)
  access_token!: string;

  @ApiEnum(['Bearer'], 'How to send the access token (RFC 6750).')
  token_type!: 'Bearer';

  @ApiInteger('The seconds until the access token expires.', 28_800)
  expires_in!: number;

  @ApiString('The granted scopes, separated by spaces.', EXAMPLE.scope)
  scope!: string;
}

@Injectable()
export class AgentTokenIssuer {
  constructor(
    private readonly tokens: AccessTokens,
    private readonly sessions: AgentSessions,
    private readonly clock: Clock,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
  ) {}

  /**
   * Issues a token without a refresh token.
   *
   * @param generation of the agent when it granted access
   * @throws AgentChangedError
   */
  async issue(grant: AgentGrant, generation: number): Promise<AgentTokenResponse> {
    const { agentId, organizationId, clientId, scope } = grant;
    const now = this.clock.now();
    const id = uuidv7(now);
    const expiresAt = new Date(now + this.configuration.AGENT_TOKEN_TTL * 1000);
    await this.sessions.begin({ id, kind: 'token', agentId, organizationId, clientId, scope, expiresAt }, generation);
    return this.issueFor(grant, { id, epoch: 0 });
  }

  /** Issues a token of a session that exists. */
  issueFor(grant: AgentGrant, session: { id: string; epoch: number }): AgentTokenResponse {
    const { agentId: sub, organizationId, clientId, scope } = grant;
    const { id: sid, epoch: ep } = session;
    const ids = { client_id: clientId, organization_id: organizationId, sid, ep };
    const ttl = this.configuration.AGENT_TOKEN_TTL;
    const jti = randomUUID();
    const token = this.tokens.issue({ sub, aud: 'agent-api', ...ids, scope }, ttl, jti);
    const agent = party('agent', sub);
    this.audit.success('token.issued', agent, agent, { organizationId, clientId, details: { jti, scope } });
    return { access_token: token, token_type: 'Bearer', expires_in: ttl, scope };
  }
}
