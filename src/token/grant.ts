import type { Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { IsString } from 'class-validator';
import type { TokenLineage } from '../access-token/token-lineage.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';

/**
 * The parameters that every grant has. The body class of a grant extends it. Properties have the names of the
 * parameters.
 */
export class GrantBody {
  @IsString()
  grant_type: string;

  /** The client that requests the token. */
  @IsString()
  client_id: string;

  /** The organization of the customer, if the body class declares it. The endpoint checks it. */
  organization_id?: string;

  /** One of the client's redirect URIs, if the body class declares it. The endpoint checks it. */
  redirect_uri?: string;
}

/** The browser that sent a request, independent of Express. */
export interface Browser {
  /** The `Origin` header. The endpoint has checked that it is an origin of the client. */
  readonly origin: string | undefined;
  /** The `Cookie` header, unchanged. */
  readonly cookies: string | undefined;
  /** Adds a `Set-Cookie` header to the response. */
  setCookie(line: string): void;
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
}

/** The customer whom the token is for, and values for the response. The endpoint issues the token. */
export interface GrantResult {
  /** The id of the customer. */
  entityId: string;
  /** The organization of the customer. */
  organizationId: string;
  /**
   * The customer's group and generation as `Identities` returned them. If one of them is omitted, the endpoint reads it
   * with one more database statement.
   */
  groupId?: string;
  generation?: number;
  /** The lineage of the token if it comes from an identity transfer. @internal */
  lineage?: TokenLineage;
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

/** The declaration of a grant. An option that is omitted is off. */
export interface GrantOptions<Body extends GrantBody, Scope extends string | undefined> {
  /** The class that declares and validates the parameters. */
  body: Type<Body>;
  /** The scope that the bearer token of the calling agent needs. If omitted, the grant needs no bearer token. */
  agentScope?: Scope;
  /** Whether the grant is also available on the path of a group (protocol §4.2). */
  groups?: boolean;
  /**
   * Whether the grant accepts `application/x-www-form-urlencoded` bodies, as RFC 6749 clients send them, besides JSON.
   */
  form?: boolean;
  /** Whether only clients that list the grant may use it. A client without `grant_types` may not. */
  optIn?: boolean;
  /**
   * Response fields in addition to those of every token response. The endpoint fills in `client_id` and
   * `organization_id` if they are listed. `GrantResult.response` has the values of the others. Reserved names stop the
   * start.
   */
  responds?: readonly string[];
  /** Fields of the grant that only some of its responses have: those whose value in `response` is not `undefined`. */
  mayRespond?: readonly string[];
  /**
   * The class that describes the claims that the grant adds to its tokens: at most 10, together at most 1 KB as JSON.
   */
  claims?: Type<object>;
  /** The class that validates the grant's entry under `grants` of clients and organizations in the registry. */
  settings?: Type<object>;
}

export type GrantMetadata = GrantOptions<GrantBody, string | undefined> & { name: string };

/** The decorator behind `@GrantType`. `GrantRegistry` finds the grants by its metadata. */
export const GrantDecorator = DiscoveryService.createDecorator<GrantMetadata>();

type AgentOf<Scope> = Scope extends string ? AgentPrincipal : undefined;

/**
 * Makes a class the handler of a `grant_type`. The class must be a provider of a module that the application imports.
 *
 * @param name a snake_case name, or a URI (RFC 6749 §4.5)
 */
export function GrantType<Body extends GrantBody, Scope extends string | undefined = undefined>(
  name: string,
  options: GrantOptions<Body, Scope>,
): (grant: Type<Grant<Body, AgentOf<Scope>>>) => void {
  return GrantDecorator({ name, ...options }) as (grant: Type<Grant<Body, AgentOf<Scope>>>) => void;
}
