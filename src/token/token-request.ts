import type { Request, Response } from 'express';
import type { AgentPrincipal } from '../bearer/principal.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import type { Browser, GrantBody } from './grant.js';
import type { IndexedGrant } from './grant-index.js';

/** What the route of a request says, next to its body. */
export interface TokenRouteParameters {
  /** The grant type of a route that has only one. */
  grantType?: string;
  /** The organization and the group in the path. */
  group?: { organizationId: string; groupId: string };
}

/** A request for a customer token. Each check of token-checks.ts reads what the checks before it have set. */
export class TokenRequest {
  /** The parameters as they were sent, with those of the route. */
  parameters: Record<string, unknown>;
  grant: IndexedGrant;
  /** The agent that calls, if the grant requires an agent. */
  agent: AgentPrincipal | undefined;
  /** The validated parameters of the grant. */
  body: GrantBody;
  client: ClientApplication;
  /** The organization that the caller named, or the agent's. Some grants find it out only when they run. */
  organization: Organization | undefined;

  constructor(
    readonly http: Request,
    readonly route: TokenRouteParameters = {},
  ) {}

  get browser(): Browser {
    const { headers, res } = this.http;
    return {
      origin: headers.origin,
      cookies: headers.cookie,
      setCookie: (line) => (res as Response).appendHeader('Set-Cookie', line),
    };
  }
}
