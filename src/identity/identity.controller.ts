import { Delete, Get, Param, UseGuards } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { UUID } from '../platform/uuid.js';
import { CustomerRecord, CustomerRecords } from './customer-records.js';

/** Lets the operator look up and erase a customer (protocol §9.2). */
@ManagementController('admin/identities')
@UseGuards(OperatorGuard)
export class IdentityController {
  constructor(private readonly records: CustomerRecords) {}

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
}
