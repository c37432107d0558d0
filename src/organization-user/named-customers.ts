import { Injectable } from '@nestjs/common';
import { IsString } from 'class-validator';
import type { AgentPrincipal } from '../bearer/principal.js';
import { CustomerRecords } from '../identity/customer-records.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { IsIdText, IsUuid, Optional } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { OrganizationUsers } from './organization-users.js';

/** The parameters by which an agent names a customer of its organization (protocol §4.14 and §4.16). */
export class NamedCustomerBody {
  @Optional()
  @IsUuid()
  @ApiProperty('The id of the customer. An agent sends this parameter or `external_id`.', EXAMPLE.entityId)
  customer_id?: string;

  @Optional()
  @IsString()
  @IsIdText()
  @ApiProperty(
    "The organization's own id of the user. Only for an agent, in place of `customer_id`.",
    EXAMPLE.externalId,
  )
  external_id?: string;
}

const ERRORS = {
  noCustomer: () => OAuthError.invalidRequest('customer_id: required, or external_id'),
  bothIds: () => OAuthError.invalidRequest('external_id: must not be sent with customer_id'),
};

/** Why an agent's `customer_id` or `external_id` is rejected. */
export const NAMED_CUSTOMER_ERRORS = () => [
  ERRORS.noCustomer(),
  ERRORS.bothIds(),
  unknownCustomer({ customer_id: EXAMPLE.entityId }),
  unknownCustomer({ external_id: EXAMPLE.externalId }),
];

/** Finds the customer that an agent names, and never creates one. */
@Injectable()
export class NamedCustomers {
  constructor(
    private readonly records: CustomerRecords,
    private readonly users: OrganizationUsers,
  ) {}

  /**
   * The id of the customer, which may be erased.
   *
   * @throws OAuthError `invalid_request`; the same for an unknown customer as for one of another organization
   */
  async idOf({ organizationId }: AgentPrincipal, named: NamedCustomerBody): Promise<string> {
    const { customer_id, external_id } = named;
    if (customer_id !== undefined && external_id !== undefined) throw ERRORS.bothIds();
    const entityId =
      external_id !== undefined
        ? await this.users.find(organizationId, external_id)
        : await this.find(organizationId, customer_id);
    if (entityId === undefined) throw unknownCustomer(named);
    return entityId;
  }

  private async find(organizationId: string, customerId: string | undefined): Promise<string | undefined> {
    if (customerId === undefined) throw ERRORS.noCustomer();
    // also an erased customer, because its erasure can be repeated
    return (await this.records.isOf(organizationId, customerId)) ? customerId : undefined;
  }
}

/** The error for an unknown customer, one of another organization, and one that cannot have the effect any more. */
export function unknownCustomer({ external_id }: NamedCustomerBody): OAuthError {
  return OAuthError.invalidRequest(`${external_id === undefined ? 'customer_id' : 'external_id'}: unknown`);
}
