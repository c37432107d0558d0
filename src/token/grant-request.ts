import type { Request } from 'express';
import { GROUP_ID, GROUP_ID_RULE } from '../customer/customer.js';
import type { AgentPrincipal } from '../http/callers/principal.js';
import type { Browser } from '../http/routes/client-request.js';
import { browserOf } from '../http/routes/request-pipe.js';
import type { NewCustomerCheck } from '../identity/extension-hooks.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { errorOf } from '../oauth/thrown-error.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import type { AnyGrantRequest, CountedProof, GrantBody, GrantMetadata, GrantRequest, GrantResult } from './grant.js';

export const TOKEN_ERRORS = {
  grant: () => OAuthError.unauthorizedClient('grant_type: not for this client'),
  organization: () => OAuthError.invalidRequest('organization_id: must be the organization of the agent'),
  organizationOfPath: () => OAuthError.invalidRequest('organization_id: must equal the organization of the path'),
  groupId: () => OAuthError.invalidRequest(`group_id: ${GROUP_ID_RULE}`),
  noGroups: () => OAuthError.invalidRequest('grant_type: not supported by the route of a group'),
  sharedGroups: () => OAuthError.unauthorizedClient('group_id: the groups of this organization share one identity'),
};

/** What the path of a request says, in addition to its body. */
export interface TokenPath {
  /** The grant type of a route that has only one grant. */
  grantType?: string;
  group?: { organizationId: string; groupId: string };
}

/** What a grant gets of a request. A class, because few grants need the network, and finding it out takes time. */
export class CheckedGrantRequest implements GrantRequest<GrantBody, AgentPrincipal | undefined> {
  readonly browser: Browser;
  readonly groupId: string;
  readonly counted: CountedProof[] = [];
  beforeNewCustomer: (() => Promise<void>) | undefined;

  constructor(
    http: Request,
    { group }: TokenPath,
    readonly declared: GrantMetadata,
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

/** Calls the extension's check of new customers for a request. */
export function newCustomerCheck(
  check: NewCustomerCheck | undefined,
  request: CheckedGrantRequest,
  parameters: Record<string, unknown>,
): (() => Promise<void>) | undefined {
  if (!check) return undefined;
  const { client, organization, groupId, browser } = request;
  return async () => {
    await check({ client, organization, groupId, parameters, origin: browser.origin, network: request.network });
  };
}

/** The body may repeat the organization of the path, but not contradict it. @throws OAuthError `invalid_request` */
export function withOrganizationOf({ group }: TokenPath, sent: Record<string, unknown>): Record<string, unknown> {
  if (!group) return sent;
  if (!GROUP_ID.test(group.groupId)) throw TOKEN_ERRORS.groupId();
  const { organization_id = group.organizationId } = sent;
  if (organization_id !== group.organizationId) throw TOKEN_ERRORS.organizationOfPath();
  return { ...sent, organization_id };
}

/** The caller may repeat a request with these statuses. */
const REPEATABLE_STATUSES = [429, 503];

/** @throws OAuthError 500 if a grant does not keep a rule that it declares */
export function assertRulesKept(grant: GrantMetadata, request: AnyGrantRequest, result: GrantResult): void {
  const { uses, endsWith } = grant;
  if (typeof uses === 'number' && request.counted.length === 0)
    throw brokenRule(grant, 'declares `uses`; call `UseCounter.count` before anything is created');
  if (endsWith === 'caller' && result.proof === undefined)
    throw brokenRule(grant, "declares endsWith 'caller'; return `proof`, as `proof()` of the caller gave it");
  if (endsWith !== 'caller' && result.proof !== undefined)
    throw brokenRule(grant, "returned `proof`; declare endsWith: 'caller' in @GrantType");
  if (endsWith === 'sessions' && result.generation === undefined)
    throw brokenRule(grant, "declares endsWith 'sessions'; return `generation`, as it was when the proof was created");
}

/** The error of the service for a grant that breaks a rule. The log says which. */
export function brokenRule({ name }: Pick<GrantMetadata, 'name'>, reason: string): OAuthError {
  return OAuthError.serverError(new Error(`${name}: ${reason}`));
}

/**
 * Runs a step of a request. If its response is 429 or 503, the caller may repeat it with the proof, which it gives
 * back.
 */
export async function givingBack<Result>(request: AnyGrantRequest, step: () => Promise<Result>): Promise<Result> {
  try {
    return await step();
  } catch (error) {
    if (REPEATABLE_STATUSES.includes(errorOf(error).status))
      // the database may be unavailable, and the proof is then used up
      for (const { giveBack } of request.counted) await giveBack().catch(() => undefined);
    throw error;
  }
}
