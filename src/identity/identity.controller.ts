import { Delete, Get, Param, UseGuards } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { UUID } from '../platform/uuid.js';
import { CustomerBrowsers } from './customer-browsers.js';
import { CustomerRecord, CustomerRecords } from './customer-records.js';

/** Lets the operator look up and erase a customer (protocol §9.2). */
@ManagementController('admin/identities')
@UseGuards(OperatorGuard)
export class IdentityController {
  constructor(
    private readonly records: CustomerRecords,
    private readonly browsers: CustomerBrowsers,
  ) {}

  @Get(':entity_id')
  @ApiRoute({ summary: 'Get the stored data of a customer', response: CustomerRecord })
  async find(@Param('entity_id') entityId: string): Promise<CustomerRecord> {
    const identity = UUID.test(entityId) ? await this.records.find(entityId) : undefined;
    if (!identity) throw OAuthError.notFound();
    return identity;
  }

  /** Ends the customer's tokens and deletes its data. The id is never used again (protocol §5.8). */
  @Delete(':entity_id')
  @ApiRoute({ summary: 'Erase a customer, and end its tokens' })
  async erase(@Param('entity_id') entityId: string): Promise<object> {
    if (!UUID.test(entityId) || !(await this.records.erase(entityId))) throw OAuthError.notFound();
    return {};
  }

  /** Ends the link from one browser to the customer. Tokens are not ended. */
  @Delete(':entity_id/browsers/:browser_id')
  @ApiRoute({ summary: 'End the link from a browser to a customer' })
  async endBrowser(@Param('entity_id') entityId: string, @Param('browser_id') browserId: string): Promise<object> {
    const areIds = UUID.test(entityId) && UUID.test(browserId);
    if (!areIds || !(await this.browsers.end(entityId, browserId))) throw OAuthError.notFound();
    return {};
  }
}
