import { HttpCode, Post } from '@nestjs/common';
import { AgentGuard } from '../http/callers/bearer.guard.js';
import { type AgentPrincipal, agentActor, CUSTOMERS_MANAGE } from '../http/callers/principal.js';
import { Caller, ValidatedBody } from '../http/routes/parameter.decorators.js';
import { Limits } from '../oauth/limits.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/listener.decorators.js';
import { qualifiedClientId } from '../session/token-validity.js';
import { CustomerErasure } from './customer-erasure.js';
import { CustomerExport, CustomerRecords } from './customer-records.js';
import { NamedCustomerBody, NamedCustomers, unknownCustomer } from './named-customers.js';

/** Lets the backend of an organization export and erase its customers (protocol §4.16). */
@PublicController('v2/customer')
export class CustomerDataController {
  constructor(
    private readonly limits: Limits,
    private readonly customers: NamedCustomers,
    private readonly records: CustomerRecords,
    private readonly erasure: CustomerErasure,
  ) {}

  @Post('export')
  @ApiRoute({
    summary: 'Get everything that is stored about a customer of your organization',
    description: 'The rows of all tables about a customer. The caller is an agent with the scope `customers:manage`.',
    response: CustomerExport,
    errors: ['429 temporarily_unavailable'],
  })
  @HttpCode(200)
  async export(
    @Caller(AgentGuard(CUSTOMERS_MANAGE)) agent: AgentPrincipal,
    @ValidatedBody(NamedCustomerBody) body: NamedCustomerBody,
  ): Promise<CustomerExport> {
    this.limits.takeKeys('tokens', qualifiedClientId(agent.claims));
    const entityId = await this.customers.idOf(agent, body);
    const exported = await this.records.export(entityId, agentActor(agent));
    if (!exported) throw unknownCustomer(body);
    return exported;
  }

  @Post('erase')
  @ApiRoute({
    summary: 'Erase a customer of your organization, and end its tokens',
    description:
      'Deletes what is stored about a customer. The caller is an agent with the scope `customers:manage`. The response is the same if the organization has no such customer.',
    errors: ['429 temporarily_unavailable'],
  })
  @HttpCode(200)
  async erase(
    @Caller(AgentGuard(CUSTOMERS_MANAGE)) agent: AgentPrincipal,
    @ValidatedBody(NamedCustomerBody) body: NamedCustomerBody,
  ): Promise<object> {
    this.limits.takeKeys('tokens', qualifiedClientId(agent.claims));
    const entityId = await this.customers.find(agent, body);
    if (entityId !== undefined) await this.erasure.erase(entityId, agentActor(agent));
    return {};
  }
}
