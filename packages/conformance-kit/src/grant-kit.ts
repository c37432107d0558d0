import type { Extension } from 'customer-authorization-service';
import type { ReplacedProvider } from './replaced-providers.js';
import type { TestService } from './test-service.js';

/** The information about a grant that the conformance kit needs in addition to the grant's decorator. */
export interface GrantKit extends Extension {
  /**
   * Returns the grant's own parameters of a new request that gets a token. The kit adds `grant_type`, `client_id` and,
   * if the body class requires it, `organization_id`. Returned values for these names take precedence. If the request
   * belongs to a customer, create a new customer for each request, because the kit erases it.
   */
  valid: (environment: TestEnvironment) => object | Promise<object>;
  /** The settings under `grants: { <name>: … }` of every client and organization of the kit's registry. */
  settings?: { client?: object; organization?: object };
  /** Additional headers of each request. The kit itself sends the bearer token of an agent with the declared scope. */
  caller?: (environment: TestEnvironment) => Record<string, string> | Promise<Record<string, string>>;
  /** Whether a request that has got a token must never get a second one. It requires the next two options. */
  singleUse?: boolean;
  /**
   * Whether only the client that a proof was created for gets a token for it, and only in the organization whose id
   * `valid` has read.
   */
  boundToClient?: boolean;
  /** The time after which a proof gets no token, in seconds; `false` if a proof never expires. */
  lifetime?: number | false;
  /**
   * Whether a proof of an existing customer ends with the sessions of the customer; `true` if omitted. `false` for a
   * proof that names something else, such as a phone.
   */
  endsWithSessions?: boolean;
  /**
   * Whether a proof ends with each bearer token that `valid` sends to the service; `true` if omitted. `false` if no
   * bearer token creates the proof, or if the proof of an agent must outlive its token, such as a printed voucher.
   */
  endsWithCaller?: boolean;
  /**
   * The parameter that a caller could guess, and the number of wrong guesses that the grant admits; `false` if guessing
   * a short proof is harmless. It is required if the proof is short.
   */
  guessable?: GuessableParameter | false;
  /**
   * Returns the parameters of a further proof for the person of earlier parameters, such as another code for the same
   * address: both get tokens of the same customer, until the customer is erased. `false` if each proof has a customer of
   * its own. It is required if a parameter is an address.
   */
  again?: ((earlier: Record<string, unknown>, environment: TestEnvironment) => object | Promise<object>) | false;
  /** A proof that waits for the decision of a person. It is required if the grant declares `polling`. */
  pending?: (environment: TestEnvironment) => PendingProof | Promise<PendingProof>;
  /** Providers of the extension that other objects replace, as for `startTestService`. */
  replace?: readonly ReplacedProvider[];
  /** Variables of the service's configuration, as for `startTestService`. Set your own in `process.env`. */
  environment?: Record<string, string>;
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

/** A parameter whose values are short enough to be guessed. */
export interface GuessableParameter {
  parameter: string;
  /** After this number of wrong values, the service refuses the right value, too. */
  limit: number;
  /**
   * Returns a wrong value for a right one, another one for each index. If omitted, the kit changes digits and letters,
   * and takes the values that the rules of the body accept.
   */
  wrong?: (right: string, index: number) => string;
}

/** A customer that was created for a browser. */
export interface Customer {
  entityId: string;
  accessToken: string;
  /** The `Cookie` header with the identity cookies of the browser. */
  cookie: string;
}

/** The service in which a grant or a route is tested, with an organization, its client, customers and agents. */
export interface TestEnvironment {
  /** The client of the requests: a private client of the organization, whose pages have the origin `origin`. */
  readonly clientId: string;
  readonly organizationId: string;
  readonly origin: string;
  /** The service with its clock, ports and providers. */
  readonly service: TestService;
  /** Creates a customer of the organization by the cookie grant. */
  newCustomer(): Promise<Customer>;
  /** Signs a token of an agent of the organization, with one scope. */
  agentToken(scope: string): Promise<string>;
  /** The same of another organization, whose callers must see and change nothing of this one. */
  readonly other: TestEnvironment;
}
