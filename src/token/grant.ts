import type { Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { IsString } from 'class-validator';
import type { TokenLineage } from '../access-token/token-lineage.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';

/** The parameters that every grant has. A grant's own body class extends it, in the names of the wire. */
export class GrantBody {
  @IsString()
  grant_type: string;

  /** The application the token is for. */
  @IsString()
  client_id: string;

  /** The organization the token is for, where the grant takes one from the caller; checked by the endpoint. */
  organization_id?: string;

  /** Checked by the endpoint against the client's, where the grant declares it. */
  redirect_uri?: string;
}

/** The browser behind a request, without the framework. */
export interface Browser {
  /** The `Origin` header; the endpoint has checked that it is one of the client's. */
  readonly origin: string | undefined;
  /** The `Cookie` header as it came. */
  readonly cookies: string | undefined;
  /** Adds a `Set-Cookie` line to the answer. */
  setCookie(line: string): void;
}

/** The organization is known beforehand where the body requires an `organization_id`, and where an agent calls. */
type OrganizationOf<Body, Agent> = Body extends { organization_id: string }
  ? Organization
  : Agent extends AgentPrincipal
    ? Organization
    : Organization | undefined;

/** What a grant is given; everything here has been checked. `agent` is there when the grant declares `agentScope`. */
export interface GrantRequest<Body extends GrantBody = GrantBody, Agent = undefined> {
  body: Body;
  client: ClientApplication;
  /** The organization that was asked for, in which the client is usable. */
  organization: OrganizationOf<Body, Agent>;
  /** The group of protocol §4.2; the empty text outside of groups. */
  groupId: string;
  agent: Agent;
  browser: Browser;
}

/** Who the token is for. The endpoint mints it. */
export interface GrantResult {
  /** The customer. */
  entityId: string;
  /** The customer's organization. */
  organizationId: string;
  /** The customer's generation as `Identities` found it; left out: the endpoint looks for the customer once more. */
  generation?: number;
  /** What the token descends from, where a transfer led to it. @internal */
  lineage?: TokenLineage;
  /** The attempt that redeemed a code for it (one-time-code), so that a replay of the code ends the token. */
  attempt?: string;
  /** Values of the grant's own fields in the answer, as declared by `responds`. */
  response?: Record<string, unknown>;
}

/** A grant proves who a token is for. Validation, minting and the answer are the endpoint's. */
export interface Grant<Body extends GrantBody = GrantBody, Agent = undefined> {
  /**
   * A property and not a method: TypeScript would let a method ask for a narrower body than the one declared.
   *
   * @throws OAuthError when the caller does not prove it
   */
  grant: (request: GrantRequest<Body, Agent>) => Promise<GrantResult>;
}

/** What a grant tells the endpoint about itself. What it does not declare stays closed. */
export interface GrantOptions<Body extends GrantBody, Scope extends string | undefined> {
  /** The class that declares and validates the parameters. */
  body: Type<Body>;
  /** The scope an agent's bearer needs; without it the grant asks for no bearer and gets no `agent`. */
  agentScope?: Scope;
  /** Whether it also answers at the address of protocol §4.2, for organizations whose groups are separated. */
  groups?: boolean;
  /** Whether a body that says it is `application/x-www-form-urlencoded` is read as one, as RFC 6749 clients send it. */
  form?: boolean;
  /** Whether only clients that list it may use it: `grant_types` left out does not mean this one. */
  optIn?: boolean;
  /** Fields of the answer beside those of every answer: `client_id`, `organization_id` (filled in), or the grant's own. */
  responds?: readonly string[];
  /** The class that validates the grant's entry under `grants` of clients and organizations in the registry. */
  settings?: Type<object>;
}

export type GrantMetadata = GrantOptions<GrantBody, string | undefined> & { name: string };

/** The metadata by which the endpoint finds the grants among all providers. */
export const GrantDecorator = DiscoveryService.createDecorator<GrantMetadata>();

type AgentOf<Scope> = Scope extends string ? AgentPrincipal : undefined;

/**
 * Makes a class the handler of a `grant_type`. The class must be a provider of a module that the application imports.
 *
 * @param name a short word, or a URI (RFC 6749 section 4.5)
 */
export function GrantType<Body extends GrantBody, Scope extends string | undefined = undefined>(
  name: string,
  options: GrantOptions<Body, Scope>,
): (grant: Type<Grant<Body, AgentOf<Scope>>>) => void {
  return GrantDecorator({ name, ...options }) as (grant: Type<Grant<Body, AgentOf<Scope>>>) => void;
}
