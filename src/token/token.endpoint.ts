import { randomUUID } from 'node:crypto';
import { type ExecutionContext, Injectable } from '@nestjs/common';
import { AccessTokens } from '../access-token/access-tokens.js';
import { Audit, party } from '../audit/audit.js';
import { BearerAuthGuard } from '../bearer/bearer.strategy.js';
import { type AgentPrincipal, agentActor } from '../bearer/principal.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { Limits } from '../rate-limit/limits.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import { Registry } from '../registry/registry.js';
import type { Browser } from '../routes/client-request.js';
import { browserOf, runChecks } from '../routes/request-checks.js';
import { AttemptLimits } from './attempt-limits.js';
import { type CustomerClaims, CustomerClaimsSource } from './customer-claims.js';
import { claimsOfResult } from './declared-claims.js';
import type { GrantBody, GrantMetadata, GrantRequest, GrantResult } from './grant.js';
import { GrantRegistry } from './grant-registry.js';
import { TOKEN_CHECKS, TokenRequest, type TokenRouteParameters, type TokenServices } from './token-checks.js';
import type { TokenResponse } from './token-response.js';

/** Issues a customer token: runs the checks that all grants have in common, then the grant, then signs the token. */
@Injectable()
export class TokenEndpoint implements TokenServices {
  constructor(
    readonly grants: GrantRegistry,
    readonly bearer: BearerAuthGuard,
    readonly registry: Registry,
    readonly limits: Limits,
    private readonly tokens: AccessTokens,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
    private readonly claims: CustomerClaimsSource,
    private readonly attempts: AttemptLimits,
  ) {}

  async respond(context: ExecutionContext, route?: TokenRouteParameters): Promise<TokenResponse> {
    const request = new TokenRequest(context, route);
    await runChecks(TOKEN_CHECKS, request, this);
    const ttlSeconds = request.client.customerTokenTtl ?? this.configuration.CUSTOMER_TOKEN_TTL;
    const granted = await this.runGrant(request);
    const customerClaims = await this.claims.of(granted, request, ttlSeconds);
    if (!request.organization) this.registry.organizationAdmitting(request.client, granted.organizationId);
    return this.issue(request, granted, customerClaims, ttlSeconds);
  }

  private async runGrant(request: TokenRequest): Promise<GrantResult> {
    const { grant, parameters: body, client, organization, caller: agent, http, route } = request;
    const groupId = route.group?.groupId ?? '';
    const input = new CheckedGrantRequest(body, client, organization as Organization, groupId, agent, browserOf(http));
    const work = async () => grant.handler.grant(input);
    const granted = await (grant.attempts ? this.attempts.run(grant, body, work) : work()).catch((error) =>
      Promise.reject(permittedError(grant, error)),
    );
    if (organization && granted.organizationId !== organization.id) throw otherOrganization(grant);
    return granted;
  }

  private issue(
    request: TokenRequest,
    granted: GrantResult,
    customerClaims: CustomerClaims,
    ttlSeconds: number,
  ): TokenResponse {
    const { grant, client, caller: agent } = request;
    const { entityId: sub, organizationId: organization_id } = granted;
    const { name: gty } = grant;
    const clientId = client.clientId;
    const jti = randomUUID();
    const own = { sub, aud: 'customer-api', client_id: clientId, organization_id, gty, ...customerClaims } as const;
    const claims = granted.claims === undefined ? own : { ...claimsOfResult(grant, granted.claims), ...own };
    const value = this.tokens.issue(claims, ttlSeconds, jti);
    const actor = agent ? agentActor(agent) : party('customer');
    this.audit.success('token.issued', actor, party('customer', sub), { details: { jti } });
    return tokenResponse(request, granted, value, ttlSeconds);
  }
}

function otherOrganization({ name }: GrantMetadata): OAuthError {
  return OAuthError.serverError(
    new Error(`${name}: the grant returned a customer of another organization than the requested one`),
  );
}

/** The error of a grant. An error of RFC 8628 §3.5 is an error of the service if the grant does not declare `polling`. */
function permittedError({ name, polling }: GrantMetadata, error: unknown): unknown {
  if (polling || !(error instanceof OAuthError && error.isPollingError)) return error;
  return OAuthError.serverError(new Error(`${name}: ${error.code} needs polling: true in @GrantType`));
}

/** Declared fields that the endpoint fills in. The grant fills in every other field that it declares in `responds`. */
const FILLED_IN_BY_ENDPOINT = new Set(['client_id', 'organization_id']);

export function ownFields({ responds = [] }: GrantMetadata): string[] {
  return responds.filter((field) => !FILLED_IN_BY_ENDPOINT.has(field));
}

function tokenResponse(request: TokenRequest, granted: GrantResult, token: string, ttlSeconds: number): TokenResponse {
  const { grant, client } = request;
  const { entityId: entity_id, organizationId } = granted;
  const response: TokenResponse = { access_token: token, entity_id, expires_in: ttlSeconds, token_type: 'Bearer' };
  if (grant.responds?.includes('client_id')) response.client_id = client.clientId;
  if (grant.responds?.includes('organization_id')) response.organization_id = organizationId;
  for (const field of [...ownFields(grant), ...(grant.mayRespond ?? [])]) response[field] = granted.response?.[field];
  if (grant.refreshTokens && granted.refreshToken !== undefined) response.refresh_token = granted.refreshToken;
  return response;
}

/** What a grant gets of a request. A class, because few grants need the network, and finding it out takes time. */
class CheckedGrantRequest implements GrantRequest<GrantBody, AgentPrincipal | undefined> {
  constructor(
    readonly body: GrantBody,
    readonly client: ClientApplication,
    readonly organization: Organization,
    readonly groupId: string,
    readonly agent: AgentPrincipal | undefined,
    readonly browser: Browser,
  ) {}

  get network(): string {
    return requestContext.required().network;
  }
}
