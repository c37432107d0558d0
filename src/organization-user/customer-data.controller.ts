import { HttpCode, Post } from '@nestjs/common';
import { AgentGuard } from '../bearer/bearer.guard.js';
import { type AgentPrincipal, agentActor, CUSTOMERS_MANAGE } from '../bearer/principal.js';
import { CustomerErasure } from '../identity/customer-erasure.js';
import { CustomerExport, CustomerRecords } from '../identity/customer-records.js';
import { invalidCursor } from '../identity/export-page.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { OptionalText } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/surfaces.js';
import { RateLimits } from '../rate-limit/rate-limits.js';
import { Caller, ValidatedBody } from '../routes/parameter.decorators.js';
import { NAMED_CUSTOMER_ERRORS, NamedCustomerBody, NamedCustomers, unknownCustomer } from './named-customers.js';

class ExportBody extends NamedCustomerBody {
  @OptionalText('`next` of the page before.', EXAMPLE.cursor)
  after?: string;
}

const errors = () => [
  ...NAMED_CUSTOMER_ERRORS(),
  OAuthError.insufficientScope(CUSTOMERS_MANAGE),
  OAuthError.rateLimited(1, 'example'),
];

/** Lets the backend of an organization export and erase its customers (protocol §4.16). */
@PublicController('v2/customer')
export class CustomerDataController {
  constructor(
    private readonly limits: RateLimits,
    private readonly customers: NamedCustomers,
    private readonly records: CustomerRecords,
    private readonly erasure: CustomerErasure,
  ) {}

  @Post('export')
  @ApiRoute({
    summary: 'Get everything that is stored about a customer of your organization',
    description:
      'The rows of all tables about a customer, at most 1,000 of each table at a time. Follow `next` until it is absent. The caller is an agent with the scope `customers:manage`.',
    bodyExamples: { 'by customer_id': ['customer_id'], 'by external_id': ['external_id'] },
    response: CustomerExport,
    errors: () => [...errors(), invalidCursor()],
  })
  @HttpCode(200)
  async export(
    @Caller(AgentGuard(CUSTOMERS_MANAGE)) agent: AgentPrincipal,
    @ValidatedBody(ExportBody) body: ExportBody,
  ): Promise<CustomerExport> {
    const entityId = await this.idOf(agent, body);
    const exported = await this.records.export(entityId, agentActor(agent), body.after);
    if (!exported) throw unknownCustomer(body);
    return exported;
  }

  @Post('erase')
  @ApiRoute({
    summary: 'Erase a customer of your organization, and end its tokens',
    description:
      'Deletes what is stored about a customer. The id is never used again. The caller is an agent with the scope `customers:manage`. The response is the same if the customer was erased before.',
    bodyExamples: { 'by customer_id': ['customer_id'], 'by external_id': ['external_id'] },
    errors,
  })
  @HttpCode(200)
  async erase(
    @Caller(AgentGuard(CUSTOMERS_MANAGE)) agent: AgentPrincipal,
    @ValidatedBody(NamedCustomerBody) body: NamedCustomerBody,
  ): Promise<object> {
    await this.erasure.erase(await this.idOf(agent, body), agentActor(agent));
    return {};
  }

  private idOf(agent: AgentPrincipal, body: NamedCustomerBody): Promise<string> {
    this.limits.take('tokens', agent.clientId);
    return this.customers.idOf(agent, body);
  }
}
