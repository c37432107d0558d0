import { Injectable, type Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { SessionClaims } from '../access-token/session-claims.js';
import type { AgentPrincipal } from '../http/callers/principal.js';
import type { Browser } from '../http/routes/client-request.js';
import type { LimitText } from '../platform/configuration/rate-limit-rule.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { type ApiError, ApiProperty } from '../platform/http/api-route.js';
import { ApiString } from '../platform/validation/validation.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';

/**
 * The parameters that every grant has. The body class of a grant extends it. Properties have the names of the
 * parameters.
 */
export class GrantBody {
  @ApiString('The grant: how the caller proves which customer the token is for.')
  grant_type!: string;

  @ApiString(
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

/** A proof that a store has counted or redeemed for a request. @internal */
export interface CountedProof {
  /** Makes it usable again. */
  giveBack(): Promise<unknown>;
}

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
   * change. An unknown network has another value in each request, so count requests with the limits of the decorators.
   */
  network: string;
  /** What the grant declares about its proofs, for the stores. @internal */
  readonly declared: ProofRules & { name: string };
  /** What the stores have counted and redeemed. @internal */
  readonly counted: CountedProof[];
  /** Lets the extension refuse a new customer. @internal */
  beforeNewCustomer?: (() => Promise<void>) | undefined;
}

/** The input of any grant, as the stores take it. */
export type AnyGrantRequest = GrantRequest<GrantBody, AgentPrincipal | undefined>;

/** The customer whom the token is for, and values for the response. The endpoint issues the token. */
export interface GrantResult {
  /** The id of the customer. */
  entityId: string;
  /**
   * The organization of the customer. The endpoint reads the customer's row, and responds with 500 if there is none in
   * this organization.
   */
  organizationId: string;
  /**
   * The customer's group and generation as `CustomerService` returned them. By default, those of the customer's row.
   * The endpoint responds with 500 if the group of the row is another one than that of the result or the path.
   */
  groupId?: string;
  generation?: number;
  /**
   * The id that `proof()` of a customer or an agent gave when it created the proof, as the route has stored it, and
   * never a text of the caller. The token then ends with the bearer token of this customer or agent (protocol §10.7).
   */
  proof?: string;
  /**
   * Whether the customer is a user. The endpoint takes it from the row, unless the grant declares `readsCustomer`.
   * @internal
   */
  hasUser?: boolean;
  /** The session of the token. By default, the token has none. @internal */
  session?: SessionClaims | undefined;
  /** The refresh token of the response, if the grant declares `refreshTokens`. @internal */
  refreshToken?: string;
  /**
   * Values of the claims that `claims` declares. They are in this token only, and in no token that descends from it.
   */
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

/** A limit of requests that a grant refuses. */
export interface AttemptLimit<Body> {
  /** What is counted together: the caller's network, and parameters of the body by their names. */
  per: readonly [AttemptKey<Body>, ...AttemptKey<Body>[]];
  /** `COUNT/SECONDS`: `5/600` is 5 refused requests in 600 seconds. */
  limit: LimitText;
}

/** `network`, or the name of a parameter of the body. */
export type AttemptKey<Body> = 'network' | (keyof Body & string);

/** The start compares the names of parameters with the body class. */
export interface DeclaredAttemptLimit {
  per: readonly string[];
  limit: string;
}

/** The texts of a grant in the OpenAPI document. The parameters, settings and claims have theirs by `@ApiProperty`. */
export interface GrantDescription {
  /** What the grant does, and for whom. */
  description: string;
  /** The class that describes the fields of `responds` and `mayRespond`. */
  response?: Type<object>;
  /** The errors of the grant, in addition to those of the endpoint. */
  errors?: readonly ApiError[];
}

/** What a grant declares about its proofs. The endpoint and the stores enforce it. */
export interface ProofRules {
  /**
   * The number of tokens that one proof gets, which the grant counts with `UseCounter`. `unlimited` if a proof may be
   * used again and again. Omitted if a proof of `OneTimeCodes`, or of a table of the grant's own, works once.
   */
  uses?: number | 'unlimited';
  /**
   * The longest time for which a proof is valid, in seconds: the lifetime of a code, and of a proof with counted uses.
   */
  lifetime?: number;
  /** Whether each client of the organization may redeem a code. By default, only the client it was issued for. */
  anyClient?: boolean;
  /** The number of wrong guesses at the codes of one recipient within `lifetime`; by default 5. */
  guesses?: number;
  /**
   * What ends a proof before its time. `caller`: the bearer token that created it; the result has `proof`. `sessions`:
   * what ends the sessions of its customer; the result has `generation`. `nothing`, for example of a printed voucher.
   * Omitted if the proof names no customer, but for example a phone.
   */
  endsWith?: 'caller' | 'sessions' | 'nothing';
  /**
   * Whether the proof shows that the caller is the person whom the organization knows, for example by a verified phone.
   * The tokens then have `user_verified: true`, as those of users of the organization do.
   */
  verifiesUser?: boolean;
}

/** The declaration of a grant. An option that is omitted is off. */
export interface GrantOptions<Body extends GrantBody, Scope extends string | undefined> extends ProofRules {
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
   * Whether the grant has read the row of each customer that it returns, or a row that names the customer. @internal
   */
  readsCustomer?: boolean;
  /** Whether responses of the grant can have a `refresh_token`. @internal */
  refreshTokens?: boolean;
  /**
   * Limits the requests that the grant refuses. Each combination of the values that `per` names may have `limit`
   * refused requests. Further requests get 429 before the grant runs. If there are several limits, all of them apply.
   */
  attempts?: AttemptLimit<NoInfer<Body>> | readonly AttemptLimit<NoInfer<Body>>[];
  /**
   * The hint of every `invalid_grant` of this grant: a constant that lists what may be wrong, by parameter. It is the
   * same for each cause, so that it tells an attacker nothing.
   */
  invalidGrantHint?: string;
  /** Whether the grant may throw the errors of RFC 8628 §3.5, such as `OAuthError.authorizationPending()`. */
  polling?: boolean;
  /**
   * The class that describes the claims that the grant adds to its tokens: at most 10, together at most 1 KB as JSON.
   */
  claims?: Type<object>;
  api?: GrantDescription;
  /** The class that validates the grant's entry under `grants` of clients and organizations in the registry. */
  settings?: Type<object>;
  /** The class for the entry of a client, if `settings` is for organizations only. @internal */
  clientSettings?: Type<object>;
}

export interface GrantMetadata extends Omit<GrantOptions<GrantBody, string | undefined>, 'attempts'> {
  name: string;
  attempts?: DeclaredAttemptLimit | readonly DeclaredAttemptLimit[];
}

/** The decorator behind `@GrantType`. `GrantRegistry` finds the grants by its metadata. */
export const GrantDecorator = DiscoveryService.createDecorator<GrantMetadata>();

/** The agent that calls a grant, if the grant declares a scope; otherwise `undefined`. */
type AgentOf<Scope> = Scope extends string ? AgentPrincipal : undefined;

/**
 * Makes a class the handler of a `grant_type`, and injectable. `defineExtension` lists the class under `grants`.
 *
 * @param name a snake_case name, or a URI (RFC 6749 §4.5)
 */
export function GrantType<Body extends GrantBody, Scope extends string | undefined = undefined>(
  name: string,
  options: GrantOptions<Body, Scope>,
): (grant: Type<Grant<Body, AgentOf<Scope>>>) => void {
  return (grant) => {
    Injectable()(grant);
    GrantDecorator({ name, ...options } as GrantMetadata)(grant);
  };
}
