import type { Request } from 'express';
import { GROUP_ID } from '../customer/customer.js';
import type { AgentPrincipal } from '../http/callers/principal.js';
import type { Browser } from '../http/routes/client-request.js';
import { browserOf } from '../http/routes/request-pipe.js';
import type { NewCustomerCheck } from '../identity/extension-hooks.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import type { CountedProof, GrantBody, GrantMetadata, GrantRequest } from './grant.js';
import { TOKEN_ERRORS } from './token-errors.js';

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
