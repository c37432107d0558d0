import { randomUUID } from 'node:crypto';
import { createParamDecorator, type ExecutionContext, HttpCode, Param, Post } from '@nestjs/common';
import type { Request } from 'express';
import { AccessTokens } from '../access-token/access-tokens.js';
import { BearerAuthGuard } from '../http/callers/bearer.strategy.js';
import { type AgentPrincipal, agentActor, assertAgent, principalOf } from '../http/callers/principal.js';
import { ExtensionHooks } from '../identity/extension-hooks.js';
import { Limits } from '../oauth/limits.js';
import { OAuthError, REQUEST_ERRORS } from '../oauth/oauth-error.js';
import { readParameters } from '../oauth/parameters.js';
import { readBody } from '../oauth/request-body.js';
import { Audit, party } from '../platform/audit/audit.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute, apiPropertyOf } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/listener.decorators.js';
import { ChecksOrigin, UsesCookies } from '../platform/http/route-parameters.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import { Registry } from '../registry/registry.js';
import { AttemptLimits } from './attempt-limits.js';
import { type CustomerClaims, CustomerClaimsSource } from './customer-claims.js';
import { claimsOfResult } from './declared-claims.js';
import { GrantBody, type GrantResult } from './grant.js';
import { GrantRegistry, type RegisteredGrant } from './grant-registry.js';
import {
  assertRulesKept,
  brokenRule,
  CheckedGrantRequest,
  givingBack,
  newCustomerCheck,
  TOKEN_ERRORS,
  type TokenPath,
  withOrganizationOf,
} from './grant-request.js';
import { TokenResponse, TokenRoute, tokenResponse } from './token-response.js';

const AGENT_TOKEN = 'agent_token';
const OTHER_ORGANIZATION = 'the grant returned a customer of another organization than the requested one';

const Context = createParamDecorator((_data: undefined, context: ExecutionContext) => context);

/** The token endpoint of customers (protocol §4): checks what all grants have in common, runs the grant, and signs. */
@PublicController('')
export class TokenController {
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
    private readonly hooks: ExtensionHooks,
  ) {}

  @Post('v2/customer/token')
  @TokenRoute({})
  @UsesCookies()
  @ChecksOrigin()
  @ApiRoute({
    summary: 'Get a customer token by a grant',
    description:
      'Issues an access token for a customer. `grant_type` says how the caller proves which customer. Each schema of the body describes the parameters of one grant.',
    response: TokenResponse,
  })
  @HttpCode(200)
  token(@Context() context: ExecutionContext): Promise<TokenResponse> {
    return this.issue(context, {});
  }

  @Post('v2/customer/:organization_id/:group_id/token')
  @TokenRoute({ group: true })
  @UsesCookies()
  @ChecksOrigin()
  @ApiRoute({
    summary: 'Get a customer token for a group of an organization',
    description:
      'The grant `cookie` or `anonymous` for one group of an organization. A browser has a customer of its own in each group.',
    pathParameters: {
      organization_id: apiPropertyOf(GrantBody, 'organization_id'),
      group_id: {
        description: 'The group: 1 to 64 letters, digits, _ or -, case-sensitive.',
        example: EXAMPLE.groupId,
      },
    },
    response: TokenResponse,
  })
  @HttpCode(200)
  groupToken(
    @Context() context: ExecutionContext,
    @Param('organization_id') organizationId: string,
    @Param('group_id') groupId: string,
  ): Promise<TokenResponse> {
    return this.issue(context, { group: { organizationId, groupId } });
  }

  /** Its requests send no `grant_type` (protocol §4.6). */
  @Post('customer')
  @TokenRoute({ grantType: AGENT_TOKEN })
  @ChecksOrigin()
  @ApiRoute({
    summary: 'Get a customer token by the agent token grant; older route',
    description:
      'The grant `agent_token` without `grant_type`, for callers that exist. New callers use `POST /v2/customer/token`.',
    path: '/customer/',
    response: TokenResponse,
  })
  @HttpCode(200)
  olderAgentToken(@Context() context: ExecutionContext): Promise<TokenResponse> {
    return this.issue(context, { grantType: AGENT_TOKEN });
  }

  /** The first step that fails determines the error response. @throws OAuthError */
  private async issue(context: ExecutionContext, path: TokenPath): Promise<TokenResponse> {
    const request = context.switchToHttp().getRequest<Request>();
    const parameters = await this.readBody(request, path);
    const grant = this.grantOf(parameters, path);
    const agent = grant.agentScope === undefined ? undefined : await this.requireAgent(context, grant.agentScope);
    const body = readParameters(grant.body, withOrganizationOf(path, parameters));
    const client = this.clientOf(body, grant, request.headers.origin);
    this.limits.takeKeys('tokens', client.clientId);
    const organization = this.organizationOf(body, client, agent, path);
    const grantRequest = new CheckedGrantRequest(
      request,
      path,
      grant,
      body,
      client,
      organization as Organization,
      agent,
    );
    grantRequest.beforeNewCustomer = newCustomerCheck(this.hooks.beforeNewCustomer, grantRequest, parameters);
    const ttlSeconds = this.configuration.CUSTOMER_TOKEN_TTL;
    const grantedTo = { grant, agent, groupId: path.group?.groupId };
    const { result, claims } = await givingBack(grantRequest, async () => {
      const result = await this.runGrant(grant, grantRequest);
      return { result, claims: await this.claims.of(result, grantedTo, ttlSeconds) };
    });
    if (!organization) this.registry.requireOrganization(client, result.organizationId);
    const { jti, token } = this.sign(grant, client, result, claims, ttlSeconds);
    const actor = agent ? agentActor(agent) : party('customer');
    this.audit.success('token.issued', actor, party('customer', result.entityId), { details: { jti } });
    return tokenResponse(grant, client, result, { token, ttlSeconds });
  }

  /** The body is JSON, or a form (RFC 6749 §4.1.3) if the requested grant declares `form`. */
  private async readBody(request: Request, { grantType }: TokenPath): Promise<Record<string, unknown>> {
    const parameters = await readBody(request, { form: (form) => this.grants.readsForms(form.get('grant_type')) });
    return grantType === undefined ? parameters : { ...parameters, grant_type: grantType };
  }

  private grantOf(parameters: Record<string, unknown>, { group }: TokenPath): RegisteredGrant {
    const grant = this.grants.named(parameters.grant_type);
    requestContext.set({ grant: grant.name, invalidGrantHint: grant.invalidGrantHint });
    if (group && !grant.groups) throw TOKEN_ERRORS.noGroups();
    return grant;
  }

  /** The requested grant decides whether an agent must call, so that no guard of the route can. */
  private async requireAgent(context: ExecutionContext, scope: string): Promise<AgentPrincipal> {
    await this.bearer.canActivate(context);
    return assertAgent(principalOf(context.switchToHttp().getRequest()), scope);
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
    const result = await (grant.attempts ? this.attempts.run(grant, body, work) : work()).catch((error) =>
      Promise.reject(permittedError(grant, error)),
    );
    if (organization && result.organizationId !== organization.id) throw brokenRule(grant, OTHER_ORGANIZATION);
    assertRulesKept(grant, request, result);
    return result;
  }

  private sign(
    grant: RegisteredGrant,
    { clientId: client_id }: ClientApplication,
    { entityId: sub, organizationId: organization_id, claims }: GrantResult,
    ofCustomer: CustomerClaims,
    ttlSeconds: number,
  ): { jti: string; token: string } {
    const ofService = { sub, aud: 'customer-api', client_id, organization_id, gty: grant.name, ...ofCustomer } as const;
    const jti = randomUUID();
    const all = claims === undefined ? ofService : { ...claimsOfResult(grant, claims), ...ofService };
    return { jti, token: this.tokens.issue(all, ttlSeconds, jti) };
  }
}

/**
 * The error of a grant. An error of RFC 8628 §3.5 is an error of the service if the grant does not declare `polling`.
 */
function permittedError({ name, polling }: RegisteredGrant, error: unknown): unknown {
  if (polling || !(error instanceof OAuthError && error.isPollingError)) return error;
  return brokenRule({ name }, `${error.code} needs polling: true in @GrantType`);
}
