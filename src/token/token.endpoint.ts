import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { IsIn, IsInt, IsString } from 'class-validator';
import { AccessTokens } from '../access-token/access-tokens.js';
import type { TokenLineage } from '../access-token/token-lineage.js';
import { Audit } from '../audit/audit.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { readParameters } from '../oauth/parameters.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import { Registry } from '../registry/registry.js';
import { CustomerLineages } from './customer-lineages.js';
import type { Browser, GrantBody, Granted } from './grant.js';
import { type IndexedGrant, ownFields } from './grant-index.js';

/** One request for a token, without the framework. */
export interface TokenRequest {
  grant: IndexedGrant;
  /** The parameters as they were sent. */
  sent: Record<string, unknown>;
  /** The organization and group in the address of 4.2. */
  address?: { organizationId: string; groupId: string };
  agent?: AgentPrincipal;
  browser: Browser;
}

/** The answer of specification 2.2; which of the optional fields it has is the grant's to say. */
export class TokenResponse {
  @IsString()
  access_token: string;

  @IsString()
  entity_id: string;

  /** Seconds. */
  @IsInt()
  expires_in: number;

  @IsIn(['Bearer'])
  token_type: 'Bearer';

  /** What the grant responds with beside. */
  [field: string]: unknown;
}

/** Who asks without a bearer: whoever the grant says it is. */
const CUSTOMER = { kind: 'customer' } as const;
const GROUP = /^[A-Za-z0-9_-]{1,64}$/;

/** What every grant has in common: checks before it, the token and the answer after it. */
@Injectable()
export class TokenEndpoint {
  constructor(
    private readonly registry: Registry,
    private readonly tokens: AccessTokens,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
    private readonly limits: RateLimits,
    private readonly lineages: CustomerLineages,
  ) {}

  /** @throws OAuthError */
  async issue(request: TokenRequest): Promise<TokenResponse> {
    const { grant, address, agent, browser } = request;
    const body = readParameters(grant.body, withAddress(request));
    const client = this.clientFor(grant, body, browser.origin);
    const organizationId = body.organization_id ?? agent?.organizationId;
    if (agent && organizationId !== agent.organizationId) {
      throw OAuthError.invalidRequest("organization_id: must be the agent's");
    }
    const organization =
      organizationId === undefined ? undefined : this.organizationFor(client, organizationId, address?.groupId);
    const granted = await grant.handler.grant({
      body,
      client,
      organization,
      groupId: address?.groupId ?? '',
      agent,
      browser,
    });
    if (granted.organizationId !== organizationId) {
      // no grant, however careless, gives an agent another organization's customer
      if (agent) throw OAuthError.serverError(new Error(`${grant.name}: granted outside of the agent's organization`));
      this.organizationFor(client, granted.organizationId);
    }
    return this.answer(request, client, granted, await this.lineages.of(granted, agent));
  }

  /** The client a request names, which may use the grant, from where the request comes, with its redirect URI. */
  private clientFor(grant: IndexedGrant, body: GrantBody, origin: string | undefined): ClientApplication {
    const client = this.registry.clientCalling(body.client_id, origin);
    requestContext.set({ clientId: client.clientId });
    if (body.redirect_uri !== undefined && !client.admitsRedirectUri(body.redirect_uri)) {
      throw OAuthError.invalidRequest("redirect_uri: not one of the client's; compare the trailing slash");
    }
    if (!client.mayUse(grant.name, grant.optIn)) throw OAuthError.unauthorizedClient('grant_type: not for this client');
    const wait = this.limits.take('tokens', client.clientId);
    if (wait > 0) throw OAuthError.rateLimited(wait, 'tokens');
    return client;
  }

  /** The organization that a request is about, which must admit the client. */
  private organizationFor(client: ClientApplication, organizationId: string, groupId?: string): Organization {
    const organization = this.registry.organization(organizationId);
    if (!organization) throw OAuthError.invalidRequest('organization_id: unknown');
    requestContext.set({ organizationId });
    if (!organization.admits(client)) throw OAuthError.invalidRequest('client_id: not usable in this organization');
    if (groupId !== undefined && organization.chatBetweenGroups) {
      throw OAuthError.unauthorizedClient('group_id: the groups of this organization share one identity');
    }
    return organization;
  }

  private answer(
    { grant, agent }: TokenRequest,
    client: ClientApplication,
    granted: Granted,
    lineage: TokenLineage,
  ): TokenResponse {
    const ttl = this.configuration.CUSTOMER_TOKEN_TTL;
    const { entityId: sub, organizationId: organization_id } = granted;
    const claims = { sub, aud: 'customer-api', client_id: client.clientId, organization_id, ...lineage } as const;
    const jti = granted.attempt ?? randomUUID();
    const token = this.tokens.issue(claims, ttl, jti);
    const actor = agent ? ({ kind: 'agent', id: agent.agentId } as const) : CUSTOMER;
    this.audit.record({
      event: 'token.issued',
      outcome: 'success',
      actor,
      subject: { kind: 'customer', id: sub },
      details: { jti },
    });
    const answer: TokenResponse = { access_token: token, entity_id: sub, expires_in: ttl, token_type: 'Bearer' };
    if (grant.responds?.includes('client_id')) answer.client_id = client.clientId;
    if (grant.responds?.includes('organization_id')) answer.organization_id = organization_id;
    for (const field of ownFields(grant)) answer[field] = granted.response?.[field];
    return answer;
  }
}

/** The parameters with the organization of the address, which the body may repeat but not contradict. */
function withAddress({ sent, address }: TokenRequest): Record<string, unknown> {
  if (!address) return sent;
  if (!GROUP.test(address.groupId))
    throw OAuthError.invalidRequest('group_id: must be 1 to 64 letters, digits, _ or -');
  const { organization_id = address.organizationId } = sent;
  if (organization_id !== address.organizationId) {
    throw OAuthError.invalidRequest("organization_id: must be the address's");
  }
  return { ...sent, organization_id };
}
