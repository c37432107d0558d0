import type { Request } from 'express';
import type { AgentPrincipal } from '../bearer/principal.js';
import { type Browser, browserOf } from '../platform/http/browser.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import type { GrantBody, GrantRequest } from './grant.js';
import type { RegisteredGrant } from './grant-registry.js';

/** The parameters that the route of a request has, in addition to its body. */
export interface TokenRouteParameters {
  /** The grant type of a route that has only one grant. */
  grantType?: string;
  /** The organization and the group in the path. */
  group?: { organizationId: string; groupId: string };
}

/**
 * A request for a customer token. A check of token-checks.ts can read the values that the checks before it have set.
 */
export class TokenRequest {
  /** The parameters of the body and the route, not yet validated. Set by `readTokenParameters`. */
  parameters: Record<string, unknown>;
  /** Set by `findGrant`. */
  grant: RegisteredGrant;
  /** The agent that calls, if the grant requires an agent. Set by `authenticateAgent`. */
  agent: AgentPrincipal | undefined;
  /** The validated parameters of the grant. Set by `validateBody`. */
  body: GrantBody;
  /** Set by `identifyClient`. */
  client: ClientApplication;
  /** Set by `findOrganization`. `undefined` for grants that find the organization only when they run. */
  organization: Organization | undefined;

  constructor(
    readonly http: Request,
    readonly route: TokenRouteParameters = {},
  ) {}

  /** The organization in the path or the body, else the agent's organization. */
  get organizationId(): string | undefined {
    return this.route.group?.organizationId ?? this.body.organization_id ?? this.agent?.organizationId;
  }

  /** The browser that calls. */
  get browser(): Browser {
    return browserOf(this.http);
  }
}

/** What a grant gets of a request. A class, because few grants need the network, and finding it out takes time. */
export class CheckedGrantRequest implements GrantRequest<GrantBody, AgentPrincipal | undefined> {
  readonly body: GrantBody;
  readonly client: ClientApplication;
  readonly organization: Organization;
  readonly groupId: string;
  readonly agent: AgentPrincipal | undefined;
  readonly browser: Browser;

  constructor({ body, client, organization, route, agent, browser }: TokenRequest) {
    this.body = body;
    this.client = client;
    this.organization = organization as Organization;
    this.groupId = route.group?.groupId ?? '';
    this.agent = agent;
    this.browser = browser;
  }

  get network(): string {
    return requestContext.required().network;
  }
}
