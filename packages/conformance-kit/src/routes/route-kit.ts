import type { Extension } from 'customer-authorization-service';
import type { GuessableParameter, TestEnvironment } from '../grant-kit.js';
import type { TestResponse } from '../http-client.js';
import type { ReplacedProvider } from '../replaced-providers.js';

/** The information about a route that the conformance kit needs in addition to the route's decorators. */
export interface RouteKit extends Extension {
  /**
   * Returns a new request that succeeds. The kit adds the bearer token of a new customer, or of an agent, unless the
   * headers have one.
   */
  valid: (environment: TestEnvironment) => RouteRequest | Promise<RouteRequest>;
  /** Whose bearer tokens the route admits; the empty list if it needs none. */
  callers: readonly ('customer' | 'agent')[];
  /** The scope that an agent needs. If omitted, an agent with the scope `customers:own` calls. */
  agentScope?: string;
  /**
   * Returns the parameters of the token request that redeems what a request has created; `false` if no grant redeems it,
   * or if the proof of an agent must outlive its token.
   * The kit adds the client. It is required if the route takes a bearer token and the extension has a grant.
   */
  redeem?: Redeem | false;
  /**
   * What the route acts on: what belongs to the organization of its caller; a customer of this organization that a
   * parameter of the body or the path names; or the same for callers of all organizations. It is required if the route
   * takes a bearer token. Otherwise the client of the request is its caller.
   */
  actsOn?: 'own organization' | { customer: string } | 'all organizations';
  /**
   * The parameter that a caller could guess, and the number of wrong guesses that the route admits; `false` if guessing
   * a short text is harmless. It is required if each request has short texts of its own.
   */
  guessable?: GuessableParameter | false;
  /**
   * How many times the route sends something to the same text of a request, such as a phone number, with what `valid`
   * itself sends; `false` if it sends nothing to it. It is required if a route without bearer tokens takes such a text.
   */
  resends?: number | false;
  /** The limits of the extension that only other routes or grants take from. */
  otherLimits?: readonly string[];
  /** Whether clients that may not use the grant of the extension may call the route. */
  anyClient?: boolean;
  /**
   * The settings under `grants: { <name>: … }` of every client and organization. Each grant of the extension gets the
   * fields that its class declares.
   */
  settings?: { client?: object; organization?: object };
  /** Providers of the extension that other objects replace, as for `startTestService`. */
  replace?: readonly ReplacedProvider[];
  /** Variables of the service's configuration, as for `startTestService`. Set your own in `process.env`. */
  environment?: Record<string, string>;
}

/** Returns the parameters of a token request that redeems what a request to a route has created. */
type Redeem = (request: RouteRequest, response: TestResponse, environment: TestEnvironment) => object | Promise<object>;

/** A request to a route. */
export interface RouteRequest {
  /** The parameters of the JSON body. */
  body?: object;
  headers?: Record<string, string>;
  /** The path with its query, if the path of the route has parameters, or if the request needs a query. */
  path?: string;
}
