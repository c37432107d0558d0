import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { BearerAuthGuard } from '../bearer/bearer.strategy.js';
import { type AgentPrincipal, assertAgent } from '../bearer/principal.js';
import { GROUP_ID, GROUP_ID_RULE } from '../customer/customer.js';
import { OAuthError, REQUEST_ERRORS } from '../oauth/oauth-error.js';
import { readBody } from '../oauth/request-body.js';
import { requestContext } from '../platform/request-context/request-context.js';
import {
  assertClientMayUseGrant,
  assertOrganizationOfCaller,
  CheckedRequest,
  type CheckServices,
  findOrganization,
  identifyClient,
  type RequestCheck,
  takeTokenRateLimit,
  validateParameters,
} from '../routes/request-checks.js';
import type { GrantBody } from './grant.js';
import type { GrantRegistry, RegisteredGrant } from './grant-registry.js';

/**
 * The checks of every token request, in their order. The first check that fails determines the error response. Then the
 * grant checks the caller's proof, and the endpoint an organization that only the grant has found.
 */
export const TOKEN_CHECKS: RequestCheck<TokenRequest, TokenServices>[] = [
  readTokenParameters,
  findGrant,
  assertGrantServesGroups,
  authenticateAgent,
  setOrganizationFromPath,
  validateParameters,
  identifyClient,
  assertRedirectUriRegistered,
  assertClientMayUseGrant,
  takeTokenRateLimit,
  assertOrganizationOfCaller,
  findOrganization,
  assertGroupsAreSeparate,
];

export const TOKEN_ERRORS = {
  grant: () => OAuthError.unauthorizedClient('grant_type: not for this client'),
  organization: () => OAuthError.invalidRequest('organization_id: must be the organization of the agent'),
  organizationOfPath: () => OAuthError.invalidRequest('organization_id: must equal the organization of the path'),
  groupId: () => OAuthError.invalidRequest(`group_id: ${GROUP_ID_RULE}`),
  noGroups: () => OAuthError.invalidRequest('grant_type: not supported by the route of a group'),
  sharedGroups: () => OAuthError.unauthorizedClient('group_id: the groups of this organization share one identity'),
};

/** The parameters that the route of a request has, in addition to its body. */
export interface TokenRouteParameters {
  /** The grant type of a route that has only one grant. */
  grantType?: string;
  group?: { organizationId: string; groupId: string };
}

export const Context = createParamDecorator((_data: undefined, context: ExecutionContext) => context);

export class TokenRequest extends CheckedRequest<GrantBody> {
  readonly errors = TOKEN_ERRORS;
  /** Set by `findGrant`. */
  override grant!: RegisteredGrant;
  /** Set by `authenticateAgent`, if the grant requires an agent. */
  override caller: AgentPrincipal | undefined;

  constructor(
    readonly context: ExecutionContext,
    readonly route: TokenRouteParameters = {},
  ) {
    super(context.switchToHttp().getRequest());
  }

  override get organizationId(): string | undefined {
    return this.route.group?.organizationId ?? super.organizationId;
  }
}

export interface TokenServices extends CheckServices {
  grants: GrantRegistry;
  bearer: BearerAuthGuard;
}

/** Reads the body. It is JSON, or a form (RFC 6749 §4.1.3) if the requested grant declares `form`. */
async function readTokenParameters(request: TokenRequest, { grants }: TokenServices): Promise<void> {
  const { http, route } = request;
  const parameters = await readBody(http, { form: (form) => grants.readsForms(form.get('grant_type')) });
  request.given = route.grantType === undefined ? parameters : { ...parameters, grant_type: route.grantType };
}

function findGrant(request: TokenRequest, { grants }: TokenServices): void {
  const grant = grants.named(request.given.grant_type);
  request.grant = grant;
  request.parameterClass = grant.body;
  requestContext.set({ grant: grant.name, invalidGrantHint: grant.invalidGrantHint });
}

function assertGrantServesGroups({ route, grant }: TokenRequest): void {
  if (route.group && !grant.groups) throw TOKEN_ERRORS.noGroups();
}

function authenticateAgent(request: TokenRequest, { bearer }: TokenServices): void | Promise<void> {
  const { agentScope } = request.grant;
  if (agentScope === undefined) return;
  return bearer.authenticate(request.context).then((principal) => {
    const agent = assertAgent(principal);
    if (!agent.scopes.includes(agentScope)) throw OAuthError.insufficientScope(agentScope);
    request.caller = agent;
  });
}

/** The body may repeat the organization of the path, but not contradict it. */
function setOrganizationFromPath(request: TokenRequest): void {
  const { group } = request.route;
  if (!group) return;
  if (!GROUP_ID.test(group.groupId)) throw TOKEN_ERRORS.groupId();
  const { organization_id = group.organizationId } = request.given;
  if (organization_id !== group.organizationId) throw TOKEN_ERRORS.organizationOfPath();
  request.given = { ...request.given, organization_id };
}

function assertRedirectUriRegistered({ parameters, client }: TokenRequest): void {
  const { redirect_uri } = parameters;
  if (redirect_uri !== undefined && !client.admitsRedirectUri(redirect_uri)) throw REQUEST_ERRORS.redirectUriUnknown();
}

/** The groups of an organization have separate identities if `chatBetweenGroups` is false. */
function assertGroupsAreSeparate({ route, organization }: TokenRequest): void {
  if (route.group && organization?.chatBetweenGroups) throw TOKEN_ERRORS.sharedGroups();
}
