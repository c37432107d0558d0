import { Identities } from '../identity/identities.js';
import { signAgentToken } from './agent-token.js';
import type { Customer, TestEnvironment } from './grant-kit.js';
import { agentEmail, FOREIGN_ORGANIZATION, ORIGIN, OWN_ORGANIZATION, SITE } from './kit-registry.js';
import type { TestService } from './test-service.js';

export const TOKEN = '/v2/customer/token';

/** The service with the kit's registry, its customers and its agents. */
export class KitEnvironment implements TestEnvironment {
  readonly clientId = SITE;
  readonly organizationId = OWN_ORGANIZATION;
  readonly origin = ORIGIN;

  constructor(readonly service: TestService) {}

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

  agentToken = (scope: string, organizationId: string = OWN_ORGANIZATION): Promise<string> =>
    signAgentToken(this.service, { email: agentEmail(organizationId), clientId: this.clientId, scope });
}
