import { signAgentToken } from './agent-token.js';
import { agentEmail, colleagueEmail, FOREIGN, type KitClient, OWN } from './kit-registry.js';
import type { TestService } from './test-service.js';

export const TOKEN = '/v2/customer/token';

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
  /** Whether this is the other one of the two organizations, with the settings in `settings.other`. */
  readonly isOther: boolean;
  /** The service with its clock, ports and providers. */
  readonly service: TestService;
  /** Creates a customer of the organization by the cookie grant. */
  newCustomer(): Promise<Customer>;
  /** Signs a token of an agent of the organization, with one scope. */
  agentToken(scope: string): Promise<string>;
  /** Signs a token of another agent of the organization, with one scope. */
  colleagueToken(scope: string): Promise<string>;
  /** The test environment of another organization, whose callers must see and change nothing of this one. */
  readonly other: TestEnvironment;
}

/**
 * The clients, customers and agents of a service that `startTestService` started without `registry`, for tests of a
 * package's own rules.
 */
export function testEnvironmentOf(service: TestService): TestEnvironment {
  return new KitEnvironment(service);
}

/** The service with the kit's registry, its customers and its agents. */
export class KitEnvironment implements TestEnvironment {
  readonly clientId: string;
  readonly organizationId: string;
  readonly origin: string;

  constructor(
    readonly service: TestService,
    client: KitClient = OWN,
  ) {
    this.clientId = client.clientId;
    this.organizationId = client.organizationId;
    this.origin = client.origin;
  }

  get isOther(): boolean {
    return this.organizationId === FOREIGN.organizationId;
  }

  get other(): KitEnvironment {
    return new KitEnvironment(this.service, this.isOther ? OWN : FOREIGN);
  }

  /** Whether a text is the id of a customer or an organization. Such an id proves nothing, and may be logged. */
  isPublicId = (text: string): boolean =>
    [OWN.organizationId, FOREIGN.organizationId].includes(text) || this.isCustomer(text);

  isCustomer = (text: string): boolean =>
    this.service.audit.some(({ subject }) => subject?.kind === 'customer' && subject.id === text);

  newCustomer = async (): Promise<Customer> => {
    const { clientId: client_id, organizationId: organization_id } = this;
    const parameters = { grant_type: 'cookie', response_type: 'token', client_id, organization_id };
    const { body, cookies } = await this.service.post(TOKEN, parameters);
    const cookie = cookies.map((line) => line.split(';')[0]).join('; ');
    return { entityId: body.entity_id, accessToken: body.access_token, cookie };
  };

  agentToken = (scope: string): Promise<string> => this.signedFor(agentEmail(this.organizationId), scope);

  colleagueToken = (scope: string): Promise<string> => this.signedFor(colleagueEmail(this.organizationId), scope);

  private signedFor(email: string, scope: string): Promise<string> {
    return signAgentToken(this.service, { email, clientId: this.clientId, scope });
  }
}
