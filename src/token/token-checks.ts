import { assertAgent } from '../bearer/principal.js';
import { GROUP_ID, GROUP_ID_RULE } from '../identity/customer.js';
import { readBody } from '../oauth/body-reader.js';
import { isForm, parseForm } from '../oauth/form.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { readParameters } from '../oauth/parameters.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { admittingOrganization } from '../registry/admitting-organization.js';
import type { TokenRequest } from './token-request.js';
import type { TokenServices } from './token-services.js';

/** @throws OAuthError the error response to the request */
type TokenCheck = (request: TokenRequest, services: TokenServices) => void | Promise<void>;

/**
 * The checks of every token request, in their order. The first check that fails determines the error response. A check
 * can read the values that the checks before it have set. Then the grant checks the caller's proof. If the grant
 * returns another organization than the one checked here, the endpoint checks that one after the grant.
 */
export const TOKEN_CHECKS: TokenCheck[] = [
  readTokenParameters,
  findGrant,
  assertGrantServesGroups,
  authenticateAgent,
  setOrganizationFromPath,
  validateBody,
  identifyClient,
  assertRedirectUriRegistered,
  assertClientMayUseGrant,
  takeTokenRateLimit,
  assertOrganizationOfAgent,
  findOrganization,
];

/** Reads the body. It is JSON, or a form (RFC 6749 §4.1.3) if the requested grant declares `form`. */
export async function readTokenParameters(request: TokenRequest, { grants }: TokenServices): Promise<void> {
  const { http, route } = request;
  const text = await readBody(http);
  const isFormBody = isForm(text, http.headers['content-type']);
  if (isFormBody && !grants.readsForms(new URLSearchParams(text).get('grant_type'))) throw OAuthError.invalidMessage();
  const parameters = isFormBody ? parseForm(text) : parseJsonObject(text);
  request.parameters = route.grantType === undefined ? parameters : { ...parameters, grant_type: route.grantType };
}

/** Finds the grant with the requested `grant_type`. */
export function findGrant(request: TokenRequest, { grants }: TokenServices): void {
  request.grant = grants.named(request.parameters.grant_type);
  requestContext.set({ grant: request.grant.name });
}

/** Validates the parameters by the body class of the grant. Undeclared parameters are ignored (RFC 6749 §3.2). */
export function validateBody(request: TokenRequest): void {
  request.body = readParameters(request.grant.body, request.parameters);
}

/**
 * Finds the client with the requested `client_id`. A request from a browser must come from one of the client's origins.
 *
 * @throws OAuthError `invalid_request`
 */
export function identifyClient(request: TokenRequest, { registry }: TokenServices): void {
  request.client = registry.clientCalling(request.body.client_id, request.http.headers.origin);
  requestContext.set({ clientId: request.client.clientId });
}

/**
 * The client must list the grant in `grant_types`. A client without `grant_types` may use every grant except those that
 * declare `optIn`.
 */
function assertClientMayUseGrant({ client, grant }: TokenRequest): void {
  if (!client.mayUse(grant.name, grant.optIn)) throw OAuthError.unauthorizedClient('grant_type: not for this client');
}

/**
 * Counts the request against the client's limit. Requests that fail an earlier check do not count. Requests that fail a
 * later check count.
 */
function takeTokenRateLimit({ client }: TokenRequest, { limits }: TokenServices): void {
  const waitSeconds = limits.take('tokens', client.clientId);
  if (waitSeconds > 0) throw OAuthError.rateLimited(waitSeconds, 'tokens');
}

/** Only grants that declare `groups` are available on the path of a group. */
function assertGrantServesGroups({ route, grant }: TokenRequest): void {
  if (route.group && !grant.groups)
    throw OAuthError.invalidRequest('grant_type: not supported by the route of a group');
}

/**
 * Checks the group of the path, and adds the organization of the path to the parameters. The body may repeat the
 * organization, but not contradict it: that is `invalid_request`, 400.
 */
function setOrganizationFromPath(request: TokenRequest): void {
  const { group } = request.route;
  if (!group) return;
  if (!GROUP_ID.test(group.groupId)) throw OAuthError.invalidRequest(`group_id: ${GROUP_ID_RULE}`);
  const { organization_id = group.organizationId } = request.parameters;
  if (organization_id !== group.organizationId)
    throw OAuthError.invalidRequest('organization_id: must equal the organization of the path');
  request.parameters = { ...request.parameters, organization_id };
}

/**
 * Finds the organization. It must admit the client. The path of a group is only for an organization whose groups have
 * separate identities (`chatBetweenGroups` is false).
 */
export function findOrganization(request: TokenRequest, { registry }: TokenServices): void {
  const { organizationId, client, route } = request;
  if (organizationId === undefined) return;
  const organization = admittingOrganization(registry, organizationId, client);
  if (route.group && organization.chatBetweenGroups)
    throw OAuthError.unauthorizedClient('group_id: the groups of this organization share one identity');
  request.organization = organization;
}

/**
 * A `redirect_uri` must be one of the client's registered redirect URIs. `ClientApplication.admitsRedirectUri` compares
 * them.
 */
export function assertRedirectUriRegistered({ body, client }: TokenRequest): void {
  if (body.redirect_uri !== undefined && !client.admitsRedirectUri(body.redirect_uri))
    throw OAuthError.invalidRequest("redirect_uri: not one of the client's; compare the trailing slash");
}

/** A grant that declares `agentScope` requires the bearer token of an agent with this scope. */
export function authenticateAgent(request: TokenRequest, { bearer }: TokenServices): void | Promise<void> {
  const { agentScope } = request.grant;
  if (agentScope === undefined) return;
  return bearer.authenticate(request.http).then((principal) => {
    const agent = assertAgent(principal);
    if (!agent.scopes.includes(agentScope)) throw OAuthError.insufficientScope(agentScope);
    request.agent = agent;
  });
}

/** An agent acts in its own organization only. */
function assertOrganizationOfAgent({ agent, organizationId }: TokenRequest): void {
  if (agent && organizationId !== agent.organizationId)
    throw OAuthError.invalidRequest('organization_id: must be the organization of the agent');
}
