import type { Extension } from '../extension.js';
import type { TestService } from './test-service.js';

/** What the conformance kit must know of a grant beside what its decorator says. */
export interface GrantKit extends Extension {
  /**
   * A fresh request that gets a token: the grant's own parameters. `grant_type`, `client_id` and, where the body class
   * requires it, `organization_id` are put in; what this answers under these names wins.
   */
  valid: (environment: TestEnvironment) => object | Promise<object>;
  /** What the registry says under `grants: { <name>: … }` of every client and organization of the kit. */
  settings?: { client?: object; organization?: object };
  /** Headers of whoever asks, beside the bearer of an agent with the declared scope, which is sent anyway. */
  caller?: (environment: TestEnvironment) => Record<string, string> | Promise<Record<string, string>>;
  /** Whether a request that has got a token must never get another. */
  singleUse?: boolean;
  /** Variables of the configuration, as for `startTestService`. */
  environment?: Record<string, string>;
}

/** A customer whom a browser has made. */
export interface Customer {
  entityId: string;
  accessToken: string;
  /** The `Cookie` header by which the browser is known. */
  cookie: string;
}

/** What `valid` and `caller` may use of the service that the grant is tested in. */
export interface TestEnvironment {
  /** The application that asks; a private one of the organization, whose pages are at the origin. */
  readonly clientId: string;
  readonly organizationId: string;
  readonly origin: string;
  /** The service itself: its clock, its ports, its providers. */
  readonly service: TestService;
  /** A new customer of the organization, by the cookie grant. */
  newCustomer(): Promise<Customer>;
  /** The bearer of an agent of the organization, with one scope. */
  agentToken(scope: string): Promise<string>;
}
