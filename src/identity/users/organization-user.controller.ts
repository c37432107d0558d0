import { Get, Req, UseGuards } from '@nestjs/common';
import { IsString } from 'class-validator';
import type { Request } from 'express';
import { OperatorGuard, RequiredRole } from '../../http/callers/operator.guard.js';
import { parseQuery } from '../../oauth/form.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { readParameters } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty, ApiRoute } from '../../platform/http/api-route.js';
import { ManagementController } from '../../platform/http/listener.decorators.js';
import { IsIdText, IsUuid, UUID_RULE } from '../../platform/validation/text-rules.js';
import { CustomerRecord, CustomerRecords } from '../customer-records.js';
import { OrganizationUsers } from './organization-users.js';

class UserQuery {
  @IsUuid()
  @ApiProperty('The organization of the user.', EXAMPLE.organizationId)
  organization_id!: string;

  @IsString()
  @IsIdText()
  @ApiProperty("The organization's own id of the user.", EXAMPLE.externalId)
  external_id!: string;
}

/** Lets the operator find a customer by the organization's own id of the user (protocol §9.2). */
@ManagementController('admin/customers')
@UseGuards(OperatorGuard)
@RequiredRole('support')
export class OrganizationUserController {
  constructor(
    private readonly users: OrganizationUsers,
    private readonly records: CustomerRecords,
  ) {}

  @Get()
  @ApiRoute({
    summary: 'Get the customer with an external id',
    description:
      "Finds a customer by the organization's own id of the user. The response is the stored data of the customer.",
    query: UserQuery,
    response: CustomerRecord,
    errors: () => [
      OAuthError.invalidRequest('organization_id: required'),
      OAuthError.invalidRequest(`organization_id: ${UUID_RULE}`),
      OAuthError.invalidRequest('external_id: required'),
    ],
  })
  async find(@Req() request: Request): Promise<CustomerRecord> {
    const { organization_id, external_id } = readParameters(UserQuery, parseQuery(request.originalUrl));
    const entityId = await this.users.find(organization_id, external_id);
    const customer = entityId === undefined ? undefined : await this.records.find(entityId);
    if (!customer) throw OAuthError.notFound();
    return customer;
  }
}
