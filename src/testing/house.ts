import { randomUUID } from 'node:crypto';
import { AgentTokens } from '../agent-auth/agent-tokens.js';
import { Identities } from '../identity/identities.js';
import type { Customer, House } from './kit.js';
import { FOREIGN, HOME, ORIGIN, SITE } from './kit-registry.js';
import type { TestService } from './service.js';

export const TOKEN = '/v2/customer/token';

/** The service with the kit's registry, and whom there is in it. */
export class TestHouse implements House {
  readonly clientId = SITE;
  readonly organizationId = HOME;
  readonly origin = ORIGIN;

  constructor(readonly service: TestService) {}

  newCustomer = async (): Promise<Customer> => {
    const { clientId: client_id, organizationId: organization_id } = this;
    const asked = { grant_type: 'cookie', response_type: 'token', client_id, organization_id };
    const { body, cookies } = await this.service.post(TOKEN, asked);
    const cookie = cookies.map((line) => line.split(';')[0]).join('; ');
    return { entityId: body.entity_id, accessToken: body.access_token, cookie };
  };

  /** A customer whom nobody of the organization may get a token for. */
  foreignCustomer(): Promise<string> {
    return this.service.application.get(Identities).create(FOREIGN);
  }

  agentToken = async (scope: string, organizationId: string = HOME): Promise<string> => {
    const agent = { agentId: randomUUID(), organizationId, clientId: this.clientId, scope };
    return this.service.application.get(AgentTokens).issue(agent).access_token;
  };
}
