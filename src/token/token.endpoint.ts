import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { AccessTokens } from '../access-token/access-tokens.js';
import { RecordedValues } from '../access-token/recorded-values.js';
import { Audit } from '../audit/audit.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { admittingOrganization } from '../registry/admitting-organization.js';
import { AttemptLimits } from './attempt-limits.js';
import { type CustomerClaims, CustomerLineages } from './customer-lineages.js';
import { claimsOfResult } from './declared-claims.js';
import type { GrantResult } from './grant.js';
import type { GrantMetadata } from './grant-type.decorator.js';
import { TOKEN_CHECKS } from './token-checks.js';
import { CheckedGrantRequest, TokenRequest, type TokenRouteParameters } from './token-request.js';
import { type TokenResponse, tokenResponse } from './token-response.js';
import { TokenServices } from './token-services.js';

/** The actor of the audit event if no agent calls. */
const CUSTOMER = { kind: 'customer' } as const;

/** Issues a customer token: runs the checks that all grants have in common, then the grant, then signs the token. */
@Injectable()
export class TokenEndpoint {
  constructor(
    private readonly services: TokenServices,
    private readonly tokens: AccessTokens,
    private readonly recorded: RecordedValues,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
    private readonly lineages: CustomerLineages,
    private readonly attempts: AttemptLimits,
  ) {}

  /** @throws OAuthError */
  async respond(http: Request, route?: TokenRouteParameters): Promise<TokenResponse> {
    const request = new TokenRequest(http, route);
    for (const check of TOKEN_CHECKS) {
      const pending = check(request, this.services);
      if (pending) await pending;
    }
    // before the grant reads a generation, so that a later revocation is published with this lifetime (protocol §7.6)
    const ttlSeconds = request.client.customerTokenTtl ?? this.configuration.CUSTOMER_TOKEN_TTL;
    if (!this.recorded.hasCustomerTokenLife(ttlSeconds)) await this.recorded.recordCustomerTokenLife(ttlSeconds);
    const granted = await this.runGrant(request);
    return this.issue(request, granted, await this.lineages.of(granted, request.agent), ttlSeconds);
  }

  private async runGrant(request: TokenRequest): Promise<GrantResult> {
    const { grant, client, organization, agent } = request;
    const granted = await this.attempts
      .run(request, () => grant.handler.grant(new CheckedGrantRequest(request)))
      .catch((error) => Promise.reject(permittedError(grant, error)));
    if (granted.organizationId === organization?.id) return granted; // `findOrganization` has checked it
    // an error of the grant must not give an agent a customer of another organization
    if (agent) throw OAuthError.serverError(new Error(`${grant.name}: granted outside of the agent's organization`));
    admittingOrganization(this.services.registry, granted.organizationId, client);
    return granted;
  }

  private issue(
    { grant, client, agent }: TokenRequest,
    granted: GrantResult,
    ofCustomer: CustomerClaims,
    ttlSeconds: number,
  ): TokenResponse {
    const { entityId: sub, organizationId: organization_id, attempt: jti = randomUUID() } = granted;
    const { name: gty } = grant;
    const clientId = client.clientId;
    const own = { sub, aud: 'customer-api', client_id: clientId, organization_id, gty, ...ofCustomer } as const;
    const claims = { ...claimsOfResult(grant, granted), ...own };
    const value = this.tokens.issue(claims, ttlSeconds, jti);
    this.auditIssue(agent, sub, jti);
    return tokenResponse(grant, client, granted, { value, ttlSeconds });
  }

  private auditIssue(agent: AgentPrincipal | undefined, entityId: string, jti: string): void {
    const actor = agent ? ({ kind: 'agent', id: agent.agentId } as const) : CUSTOMER;
    const subject = { kind: 'customer', id: entityId } as const;
    this.audit.record({ event: 'token.issued', outcome: 'success', actor, subject, details: { jti } });
  }
}

/** The error of a grant. An error of RFC 8628 §3.5 is an error of the service if the grant does not declare `polling`. */
function permittedError({ name, polling }: GrantMetadata, error: unknown): unknown {
  if (polling || !(error instanceof OAuthError && error.isPollingError)) return error;
  return OAuthError.serverError(new Error(`${name}: ${error.code} needs polling: true in @GrantType`));
}
