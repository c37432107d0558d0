import { CustomerService } from 'customer-authorization-service/grant';
import { signAgentToken } from './agent-token.js';
import type { Customer, TestEnvironment } from './grant-kit.js';
import {
  agentEmail,
  FOREIGN_ORGANIZATION,
  FOREIGN_ORIGIN,
  FOREIGN_SITE,
  ORIGIN,
  OWN_ORGANIZATION,
  SITE,
} from './kit-registry.js';
import type { TestService } from './test-service.js';

/** The organization of the requests, and another one, each with its client. */
export const OWN = { clientId: SITE, organizationId: OWN_ORGANIZATION, origin: ORIGIN };
const FOREIGN = { clientId: FOREIGN_SITE, organizationId: FOREIGN_ORGANIZATION, origin: FOREIGN_ORIGIN };
const ORGANIZATIONS = [OWN_ORGANIZATION, FOREIGN_ORGANIZATION];

/**
 * The clients, customers and agents of a service that `startTestService` started without `registry`, for tests of a
 * package's own rules.
 */
export function testEnvironmentOf(service: TestService): TestEnvironment {
  return new KitEnvironment(service);
}

export const TOKEN = '/v2/customer/token';

/** The service with the kit's registry, its customers and its agents. */
export class KitEnvironment implements TestEnvironment {
  readonly clientId: string;
  readonly organizationId: string;
  readonly origin: string;

  /** The organizations of the customers. */
  private readonly customers = new Map<string, string | undefined>();
  private auditedCount = 0;

  constructor(
    readonly service: TestService,
    organization: typeof OWN = OWN,
  ) {
    this.clientId = organization.clientId;
    this.organizationId = organization.organizationId;
    this.origin = organization.origin;
  }

  get other(): KitEnvironment {
    return new KitEnvironment(this.service, this.organizationId === OWN_ORGANIZATION ? FOREIGN : OWN);
  }

  /** Whether a text is the id of a customer or an organization. Such an id proves nothing, and may be logged. */
  isPublicId = (text: string): boolean => this.isCustomer(text) || ORGANIZATIONS.includes(text);

  isCustomer = (text: string): boolean => this.auditedCustomers().has(text);

  customersOf = (organizationId: string): string[] =>
    [...this.auditedCustomers()].flatMap(([id, organization]) => (organization === organizationId ? [id] : []));

  newCustomer = async (): Promise<Customer> => {
    const { clientId: client_id, organizationId: organization_id } = this;
    const parameters = { grant_type: 'cookie', response_type: 'token', client_id, organization_id };
    const { body, cookies } = await this.service.post(TOKEN, parameters);
    const cookie = cookies.map((line) => line.split(';')[0]).join('; ');
    return { entityId: body.entity_id, accessToken: body.access_token, cookie };
  };

  /** Creates a customer of another organization. No caller of this organization may get a token for it. */
  async foreignCustomer(): Promise<string> {
    return (await this.service.application.get(CustomerService).create(FOREIGN_ORGANIZATION)).entityId;
  }

  agentToken = (scope: string, organizationId = this.organizationId): Promise<string> =>
    signAgentToken(this.service, { email: agentEmail(organizationId), clientId: this.clientId, scope });

  private auditedCustomers(): Map<string, string | undefined> {
    const { audit } = this.service;
    for (; this.auditedCount < audit.length; this.auditedCount++) {
      const { subject, organizationId } = audit[this.auditedCount] ?? {};
      if (subject?.kind === 'customer' && subject.id !== undefined) this.customers.set(subject.id, organizationId);
    }
    return this.customers;
  }
}
