import { Injectable } from '@nestjs/common';
import { IsString } from 'class-validator';
import { Customers } from '../customer/customers.js';
import type { AgentPrincipal } from '../http/callers/principal.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { IsIdText, IsUuid } from '../platform/validation/text-rules.js';
import { Optional } from '../platform/validation/validation.js';
import { OrganizationUsers } from './users/organization-users.js';

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

/** Finds the customer that an agent names, and never creates one. */
@Injectable()
export class NamedCustomers {
  constructor(
    private readonly customers: Customers,
    private readonly users: OrganizationUsers,
  ) {}

  /**
   * The id of the customer.
   *
   * @throws OAuthError `invalid_request`; the same for an unknown customer as for one of another organization
   */
  async idOf(agent: AgentPrincipal, named: NamedCustomerBody): Promise<string> {
    const entityId = await this.find(agent, named);
    if (entityId === undefined) throw unknownCustomer(named);
    return entityId;
  }

  /**
   * The id of the customer; `undefined` for an unknown one and for one of another organization. The customer may be
   * being erased, because its erasure can be repeated.
   *
   * @throws OAuthError `invalid_request` without an id, and with both
   */
  async find({ organizationId }: AgentPrincipal, named: NamedCustomerBody): Promise<string | undefined> {
    const { customer_id, external_id } = named;
    if (customer_id !== undefined && external_id !== undefined)
      throw OAuthError.invalidRequest('external_id: must not be sent with customer_id');
    if (external_id !== undefined) return this.users.find(organizationId, external_id);
    if (customer_id === undefined) throw OAuthError.invalidRequest('customer_id: required, or external_id');
    const customer = await this.customers.find(customer_id);
    return customer?.organization_id === organizationId ? customer_id : undefined;
  }
}

/** The error for an unknown customer, one of another organization, and one that cannot have the effect any more. */
export function unknownCustomer({ external_id }: NamedCustomerBody): OAuthError {
  return OAuthError.invalidRequest(`${external_id === undefined ? 'customer_id' : 'external_id'}: unknown`);
}
