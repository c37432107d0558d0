import type { TokenLineage } from '../access-token/token-lineage.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import { Text } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import type { Browser } from '../routes/client-request.js';

/**
 * The parameters that every grant has. The body class of a grant extends it. Properties have the names of the
 * parameters.
 */
export class GrantBody {
  @Text('The grant: how the caller proves which customer the token is for.')
  grant_type!: string;

  @Text(
    'The client that requests the token. A present `Origin` header must be an origin of this client.',
    EXAMPLE.clientId,
  )
  client_id!: string;

  /** A parameter if the body class declares it. The endpoint checks it. */
  @ApiProperty('The organization that the token is for: a UUID in lower case.', EXAMPLE.organizationId)
  organization_id?: string;

  /** A parameter if the body class declares it. The endpoint checks it. */
  @ApiProperty(
    'One of the redirect URIs of the client. If omitted, the endpoint checks the `Origin` header alone.',
    EXAMPLE.redirectUri,
  )
  redirect_uri?: string;
}

/** The organization is known before the grant runs if the body requires an `organization_id`, or if an agent calls. */
type OrganizationOf<Body, Agent> = Body extends { organization_id: string }
  ? Organization
  : Agent extends AgentPrincipal
    ? Organization
    : Organization | undefined;

/** The input of a grant. The endpoint has run its checks on it. `agent` is set if the grant declares `agentScope`. */
export interface GrantRequest<Body extends GrantBody = GrantBody, Agent = undefined> {
  body: Body;
  client: ClientApplication;
  /** The requested organization, which admits the client. */
  organization: OrganizationOf<Body, Agent>;
  /** The group in the path (protocol §4.2); the empty string on a path without a group. */
  groupId: string;
  agent: Agent;
  browser: Browser;
  /**
   * The caller's network: an IPv4 address, or the /64 of an IPv6 address. Only compare it, or hash it; its form may
   * change.
   */
  network: string;
}

/** The customer whom the token is for, and values for the response. The endpoint issues the token. */
export interface GrantResult {
  /** The id of the customer. */
  entityId: string;
  /** The organization of the customer. */
  organizationId: string;
  /**
   * The customer's group and generation as `Identities` returned them. By default, those of the customer's row. The
   * endpoint reads the row, and responds with 500 if its group is another one than that of the result or the path.
   */
  groupId?: string;
  generation?: number;
  /**
   * The text that `descent()` of a customer or an agent gave when it created the proof, as the grant has stored it. The
   * token then descends from the bearer token of this caller (protocol §10.7).
   */
  descent?: string;
  /** The lineage of the token. By default, that of the customer or of the calling agent. @internal */
  lineage?: TokenLineage;
  /** The refresh token of the response, if the grant declares `refreshTokens`. @internal */
  refreshToken?: string;
  /**
   * The id of the attempt that redeemed a proof. It becomes the `jti` of the token. If a one-time code is used
   * again, the token with this `jti` is revoked.
   */
  attempt?: string;
  /** Values of the claims that `claims` declares. They are in this token only, and in no token that descends from it. */
  claims?: object;
  /** Values of the grant's own response fields, which `responds` declares. Other keys are ignored. */
  response?: Record<string, unknown>;
}

/**
 * A grant finds out which customer a token is for. The endpoint validates the request, issues the token and responds.
 */
export interface Grant<Body extends GrantBody = GrantBody, Agent = undefined> {
  /**
   * A property instead of a method, because TypeScript checks the parameters of methods less strictly. A method could
   * require a narrower `body` than the declared class.
   *
   * @throws OAuthError if the caller does not prove which customer it is
   */
  grant: (request: GrantRequest<Body, Agent>) => Promise<GrantResult>;
}
