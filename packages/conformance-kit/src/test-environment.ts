import { Identities } from 'customer-authorization-service/grant';
import { signAgentToken } from './agent-token.js';
import type { Customer, TestEnvironment } from './grant-kit.js';
import {
  agentEmail,
  FOREIGN_ORGANIZATION,
  ORIGIN,
  OWN_ORGANIZATION,
  SHARED_ORGANIZATION,
  SITE,
} from './kit-registry.js';
import type { TestService } from './test-service.js';

const ORGANIZATIONS = [OWN_ORGANIZATION, FOREIGN_ORGANIZATION, SHARED_ORGANIZATION];

/**
 * The client, the customers and the agents of a service that `startTestService` started without `registry`, for tests of
 * a package's own rules.
 */
export function testEnvironmentOf(service: TestService): TestEnvironment {
  return new KitEnvironment(service);
}

export const TOKEN = '/v2/customer/token';

/** The service with the kit's registry, its customers and its agents. */
export class KitEnvironment implements TestEnvironment {
  readonly clientId = SITE;
  readonly organizationId = OWN_ORGANIZATION;
  readonly origin = ORIGIN;

  private readonly customers = new Set<string>();
  private auditedCount = 0;

  constructor(readonly service: TestService) {}

  /** Whether a text is the id of a customer or an organization. Such an id proves nothing, and may be logged. */
  isPublicId = (text: string): boolean => this.isCustomer(text) || ORGANIZATIONS.includes(text);

  isCustomer = (text: string): boolean => {
    const { audit } = this.service;
    for (; this.auditedCount < audit.length; this.auditedCount++) {
      const { subject } = audit[this.auditedCount] ?? {};
      if (subject?.kind === 'customer' && subject.id !== undefined) this.customers.add(subject.id);
    }
    return this.customers.has(text);
  };

  newCustomer = async (): Promise<Customer> => {
    const { clientId: client_id, organizationId: organization_id } = this;
    const parameters = { grant_type: 'cookie', response_type: 'token', client_id, organization_id };
    const { body, cookies } = await this.service.post(TOKEN, parameters);
    const cookie = cookies.map((line) => line.split(';')[0]).join('; ');
    return { entityId: body.entity_id, accessToken: body.access_token, cookie };
  };

  /** Creates a customer of another organization. No caller of this organization may get a token for it. */
  async foreignCustomer(): Promise<string> {
    return (await this.service.application.get(Identities).create(FOREIGN_ORGANIZATION)).entityId;
  }

  agentToken = (scope: string, organizationId = OWN_ORGANIZATION, clientId: string = this.clientId): Promise<string> =>
    signAgentToken(this.service, { email: agentEmail(organizationId), clientId, scope });
}
