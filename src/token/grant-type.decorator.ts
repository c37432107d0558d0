import type { Type } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { AgentPrincipal } from '../bearer/principal.js';
import type { LimitText } from '../platform/configuration/rate-limit-rule.js';
import type { ApiError, ApiExamples } from '../platform/http/api-route.js';
import type { Grant, GrantBody } from './grant.js';

/** A limit of requests that a grant refuses. */
export interface AttemptLimit<Body> {
  /** What is counted together: the caller's network, and parameters of the body by their names. */
  per: readonly [AttemptKey<Body>, ...AttemptKey<Body>[]];
  /** `COUNT/SECONDS`: `5/600` is 5 refused requests in 600 seconds. */
  limit: LimitText;
}

/** `network`, or the name of a parameter of the body. */
export type AttemptKey<Body> = 'network' | (keyof Body & string);

/** A limit of refused requests, whose names of parameters the start compares with the body class. */
export interface DeclaredAttemptLimit {
  per: readonly string[];
  limit: string;
}

/** The texts of a grant in the OpenAPI document. The parameters, settings and claims have theirs by `@ApiProperty`. */
export interface GrantDescription {
  /** What the grant does, and for whom. */
  description: string;
  /** Examples of requests. If omitted, one example with the required parameters. */
  examples?: ApiExamples;
  /** The class that describes the fields of `responds` and `mayRespond`. */
  response?: Type<object>;
  /** The errors of the grant, in addition to those of the endpoint. */
  errors?: () => ApiError[];
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
  /** Whether responses of the grant can have a `refresh_token`. @internal */
  refreshTokens?: boolean;
  /** Whether the grant has read the row of each customer that it returns, as the grants of this service do. @internal */
  readsCustomers?: boolean;
  /**
   * Limits the requests that the grant refuses. Each combination of the values that `per` names may have `limit`
   * refused requests. Further requests get 429 before the grant runs. If there are several limits, all of them apply.
   */
  attempts?: AttemptLimit<NoInfer<Body>> | readonly AttemptLimit<NoInfer<Body>>[];
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
