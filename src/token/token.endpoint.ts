import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { AccessTokens } from '../access-token/access-tokens.js';
import { GROUP_ID } from '../customer/customer.js';
import { BearerAuthGuard } from '../http/callers/bearer.strategy.js';
import { type AgentPrincipal, agentActor, assertAgent } from '../http/callers/principal.js';
import type { Browser } from '../http/routes/client-request.js';
import { browserOf } from '../http/routes/request-pipe.js';
import { Limits } from '../oauth/limits.js';
import { OAuthError, REQUEST_ERRORS } from '../oauth/oauth-error.js';
import { readParameters } from '../oauth/parameters.js';
import { readBody } from '../oauth/request-body.js';
import { Audit, party } from '../platform/audit/audit.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import { Registry } from '../registry/registry.js';
import { AttemptLimits } from './attempt-limits.js';
import { type CustomerClaims, CustomerClaimsSource } from './customer-claims.js';
import { claimsOfResult } from './declared-claims.js';
import type { GrantBody, GrantRequest, GrantResult } from './grant.js';
import { GrantRegistry, type RegisteredGrant } from './grant-registry.js';
import { TOKEN_ERRORS } from './token-errors.js';
import { type TokenResponse, tokenResponse } from './token-response.js';

/** What the path of a request says, in addition to its body. */
export interface TokenPath {
  /** The grant type of a route that has only one grant. */
  grantType?: string;
  group?: { organizationId: string; groupId: string };
}

/** Issues a customer token: checks what all grants have in common, runs the grant, and signs the token. */
@Injectable()
export class TokenEndpoint {
  constructor(
    private readonly grants: GrantRegistry,
    private readonly bearer: BearerAuthGuard,
    private readonly registry: Registry,
    private readonly limits: Limits,
    private readonly attempts: AttemptLimits,
    private readonly claims: CustomerClaimsSource,
    private readonly tokens: AccessTokens,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
  ) {}

  /** The first step that fails determines the error response. @throws OAuthError */
  async respond(http: Request, path: TokenPath = {}): Promise<TokenResponse> {
    const sent = await this.readBody(http, path);
    const grant = this.grantOf(sent, path);
    const agent = grant.agentScope === undefined ? undefined : await this.requireAgent(http, grant.agentScope);
    const body = readParameters(grant.body, withOrganizationOf(path, sent));
    const client = this.clientOf(body, grant, http.headers.origin);
    this.limits.takeKeys('tokens', client.clientId);
    const organization = this.organizationOf(body, client, agent, path);
    const request = new CheckedGrantRequest(http, path, body, client, organization as Organization, agent);
    const granted = await this.runGrant(grant, request);
    const ttlSeconds = client.customerTokenTtl ?? this.configuration.CUSTOMER_TOKEN_TTL;
    const ofCustomer = await this.claims.of(granted, { grant, agent, groupId: path.group?.groupId }, ttlSeconds);
    if (!organization) this.registry.requireOrganization(client, granted.organizationId);
    const token = this.sign(grant, client, granted, ofCustomer, ttlSeconds);
    this.recordIssued(granted, token, agent);
    return tokenResponse(grant, client, granted, { ...token, ttlSeconds });
  }

  /** The body is JSON, or a form (RFC 6749 §4.1.3) if the requested grant declares `form`. */
  private async readBody(http: Request, { grantType }: TokenPath): Promise<Record<string, unknown>> {
    const sent = await readBody(http, { form: (form) => this.grants.readsForms(form.get('grant_type')) });
    return grantType === undefined ? sent : { ...sent, grant_type: grantType };
  }

  private grantOf(sent: Record<string, unknown>, { group }: TokenPath): RegisteredGrant {
    const grant = this.grants.named(sent.grant_type);
    requestContext.set({ grant: grant.name, invalidGrantHint: grant.invalidGrantHint });
    if (group && !grant.groups) throw TOKEN_ERRORS.noGroups();
    return grant;
  }

  private async requireAgent(http: Request, scope: string): Promise<AgentPrincipal> {
    const agent = assertAgent(await this.bearer.authenticate(http));
    if (!agent.scopes.includes(scope)) throw OAuthError.insufficientScope(scope);
    return agent;
  }

  private clientOf(body: GrantBody, grant: RegisteredGrant, origin: string | undefined): ClientApplication {
    const client = this.registry.requireClient(body.client_id, origin);
    requestContext.set({ clientId: client.clientId });
    if (body.redirect_uri !== undefined && !client.admitsRedirectUri(body.redirect_uri))
      throw REQUEST_ERRORS.redirectUriUnknown();
    if (!client.mayUse(grant.name, grant.optIn)) throw TOKEN_ERRORS.grant();
    return client;
  }

  /** `undefined` if neither the request nor the agent names one. Then the grant finds it. */
  private organizationOf(
    body: GrantBody,
    client: ClientApplication,
    agent: AgentPrincipal | undefined,
    { group }: TokenPath,
  ): Organization | undefined {
    const organizationId = body.organization_id ?? group?.organizationId ?? agent?.organizationId;
    if (agent && organizationId !== agent.organizationId) throw TOKEN_ERRORS.organization();
    if (organizationId === undefined) return undefined;
    const organization = this.registry.requireOrganization(client, organizationId);
    if (group && organization.chatBetweenGroups) throw TOKEN_ERRORS.sharedGroups();
    return organization;
  }

  private async runGrant(grant: RegisteredGrant, request: CheckedGrantRequest): Promise<GrantResult> {
    const { body, organization } = request;
    const work = async () => grant.handler.grant(request);
    const granted = await (grant.attempts ? this.attempts.run(grant, body, work) : work()).catch((error) =>
      Promise.reject(permittedError(grant, error)),
    );
    if (organization && granted.organizationId !== organization.id) throw otherOrganization(grant);
    return granted;
  }

  private sign(
    grant: RegisteredGrant,
    { clientId: client_id }: ClientApplication,
    granted: GrantResult,
    ofCustomer: CustomerClaims,
    ttlSeconds: number,
  ): { jti: string; token: string } {
    const { entityId: sub, organizationId: organization_id, claims } = granted;
    const ofService = { sub, aud: 'customer-api', client_id, organization_id, gty: grant.name, ...ofCustomer } as const;
    const jti = randomUUID();
    const all = claims === undefined ? ofService : { ...claimsOfResult(grant, claims), ...ofService };
    return { jti, token: this.tokens.issue(all, ttlSeconds, jti) };
  }

  private recordIssued({ entityId }: GrantResult, { jti }: { jti: string }, agent: AgentPrincipal | undefined): void {
    const actor = agent ? agentActor(agent) : party('customer');
    this.audit.success('token.issued', actor, party('customer', entityId), { details: { jti } });
  }
}

/** The body may repeat the organization of the path, but not contradict it. */
function withOrganizationOf({ group }: TokenPath, sent: Record<string, unknown>): Record<string, unknown> {
  if (!group) return sent;
  if (!GROUP_ID.test(group.groupId)) throw TOKEN_ERRORS.groupId();
  const { organization_id = group.organizationId } = sent;
  if (organization_id !== group.organizationId) throw TOKEN_ERRORS.organizationOfPath();
  return { ...sent, organization_id };
}

function otherOrganization({ name }: RegisteredGrant): OAuthError {
  return OAuthError.serverError(
    new Error(`${name}: the grant returned a customer of another organization than the requested one`),
  );
}

/** The error of a grant. An error of RFC 8628 §3.5 is an error of the service if the grant does not declare `polling`. */
function permittedError({ name, polling }: RegisteredGrant, error: unknown): unknown {
  if (polling || !(error instanceof OAuthError && error.isPollingError)) return error;
  return OAuthError.serverError(new Error(`${name}: ${error.code} needs polling: true in @GrantType`));
}

/** What a grant gets of a request. A class, because few grants need the network, and finding it out takes time. */
class CheckedGrantRequest implements GrantRequest<GrantBody, AgentPrincipal | undefined> {
  readonly browser: Browser;
  readonly groupId: string;

  constructor(
    http: Request,
    { group }: TokenPath,
    readonly body: GrantBody,
    readonly client: ClientApplication,
    readonly organization: Organization,
    readonly agent: AgentPrincipal | undefined,
  ) {
    this.browser = browserOf(http);
    this.groupId = group?.groupId ?? '';
  }

  get network(): string {
    return requestContext.required().network;
  }
}
