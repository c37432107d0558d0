import { Delete, Get, Param, UseGuards } from '@nestjs/common';
import { AdminGuard } from '../oauth/admin.guard.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { UUID } from '../platform/uuid.js';
import { CustomerRecords } from './customer-records.js';

/** What an operator may do with a customer: look it up, erase it (contract, section 9). */
@ManagementController('admin/identities')
@UseGuards(AdminGuard)
export class IdentityController {
  constructor(private readonly records: CustomerRecords) {}

  @Get(':entity_id')
  async find(@Param('entity_id') entityId: string): Promise<object> {
    const identity = UUID.test(entityId) ? await this.records.find(entityId) : undefined;
    if (!identity) throw OAuthError.notFound();
    return identity;
  }

  /** Ends the customer's tokens and forgets whom they were of; its id is never given to anybody again. */
  @Delete(':entity_id')
  async erase(@Param('entity_id') entityId: string): Promise<object> {
    if (!UUID.test(entityId) || !(await this.records.erase(entityId))) throw OAuthError.notFound();
    return {};
  }
}
