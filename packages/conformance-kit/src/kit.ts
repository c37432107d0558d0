import type { Extension } from '@customer-authorization/service';
import type { Settings } from './kit-registry.js';
import type { TestEnvironment } from './test-environment.js';
import type { Upstream } from './upstream.js';

/** What the tests of a grant and of a route have in common. */
export interface CommonKit extends Extension {
  /** The settings of the clients and of the organizations under `grants: { <name>: … }` in the registry of the test. */
  settings?: Settings;
  /** The system that a class of the extension calls, for the tests of its failures and of its messages. */
  upstream?: Upstream;
  /** Variables of the configuration of the service. Set your own in `process.env`. */
  environment?: Record<string, string>;
}

/** What the kit needs to know of a grant in addition to its decorator. */
export interface GrantKit extends CommonKit {
  /**
   * Returns the grant's own parameters of a new request that gets a token. The kit adds `grant_type`, `client_id` and,
   * if the body requires it, `organization_id`. The kit also calls it with `environment.other`, for a proof of the
   * other organization. If the proof belongs to a customer, create a new customer in each call, because the kit erases
   * it.
   */
  valid: (environment: TestEnvironment) => object | Promise<object>;
  /** Further headers of each request. The kit itself sends the bearer token of an agent with the declared scope. */
  caller?: (environment: TestEnvironment) => Record<string, string> | Promise<Record<string, string>>;
  /**
   * Returns forged proofs like valid ones, each of which gets no token: unsigned, signed with another key, changed. It
   * is required unless a route of the extension makes the proof, or the proof is a JWT, which the kit forges itself.
   */
  forged?: (parameters: Record<string, unknown>, environment: TestEnvironment) => object[] | Promise<object[]>;
  /** Whether every organization that has the grant accepts the same proof. */
  anyOrganization?: boolean;
  /**
   * Returns the parameters of a further proof for the person of earlier parameters, such as another code for the same
   * phone: both get tokens of the same customer, until it is erased, and of another customer in another organization.
   * `false` if each proof has a customer of its own. It is required if a parameter is a phone or an email address.
   */
  again?: ((earlier: Record<string, unknown>, environment: TestEnvironment) => object | Promise<object>) | false;
  /** A proof that waits for the decision of a person. It is required if the grant declares `polling`. */
  pending?: (environment: TestEnvironment) => PendingProof | Promise<PendingProof>;
}

/** A proof that a person has not confirmed yet. */
export interface PendingProof {
  /** The grant's own parameters of a poll. */
  parameters: object;
  /** Confirms the proof. The next poll gets a token. */
  confirm: () => unknown;
  /** The shortest time between two polls. */
  intervalSeconds: number;
}

/** What the kit needs to know of a route in addition to its decorators. */
export interface RouteKit extends CommonKit {
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
   * What the route acts on: what belongs to its caller alone, or to the organization of its caller; a customer of this
   * organization that a parameter of the path or the body names; or the same for callers of all organizations. It is
   * required if the route takes a bearer token. Otherwise the client of the request is its caller.
   */
  actsOn?: 'own caller' | 'own organization' | { customer: string } | 'all organizations';
  /**
   * For a route whose response has a list: adds a row that the list shows to the caller of `valid`, and the number of
   * rows that a response has at most. `false` if the list cannot grow. It is required if a `GET` route responds with a
   * list.
   */
  list?: { add: (request: RouteRequest, environment: TestEnvironment) => unknown; most: number } | false;
  /** Whether the route may call the system of `upstream` any number of times, because the system sends no message. */
  unlimited?: boolean;
  /** Whether a `GET` request may change rows of the extension. */
  changesRows?: boolean;
  /** Whether clients that may not use the grant of the extension may call the route. */
  anyClient?: boolean;
}

/** A request to a route. */
export interface RouteRequest {
  /** The parameters of the JSON body. */
  body?: object;
  headers?: Record<string, string>;
  /** The path with its query, if the path of the route has parameters, or if the request needs a query. */
  path?: string;
}
