import type { Extension } from '@customer-authorization/service';
import {
  type AgentPrincipal,
  type CustomerService,
  GrantBody,
  type GrantOptions,
  type GrantRequest,
  type GrantResult,
  OAuthError,
  Optional,
  UUID,
} from '@customer-authorization/service/grant';
import type { Type } from '@nestjs/common';
import { Matches } from 'class-validator';
import { grantOf } from './grant-of.js';

/** A body class that satisfies every rule. */
export class TicketBody extends GrantBody {
  @Matches(UUID)
  override organization_id!: string;

  @Matches(/^\d{6}$/)
  ticket!: string;

  @Optional()
  @Matches(/^.{0,100}$/)
  override redirect_uri?: string;
}

export type TicketRequest = GrantRequest<TicketBody, AgentPrincipal | undefined>;
export type Behavior = (request: TicketRequest, customers: CustomerService) => Promise<GrantResult>;

/** The behavior of a correct grant: a valid ticket creates a customer. */
export const sound: Behavior = async ({ body, groupId }, customers) => {
  if (body.ticket !== '123456') throw OAuthError.invalidGrant('another ticket');
  const customer = await customers.create({ organizationId: body.organization_id, groupId });
  return { ...customer, response: { prize: 'a bicycle' } };
};

/** A grant with the given behavior. */
export function grantThat(
  behaves: Behavior,
  options: Partial<GrantOptions<TicketBody, string | undefined>> = {},
  name = 'ticket',
): { grant: Type } & Extension {
  const all = { body: TicketBody, responds: ['prize'], uses: 'unlimited', ...options } as GrantOptions<
    TicketBody,
    undefined
  >;
  const provided = grantOf(name, all, (request, customers) => behaves(request as TicketRequest, customers));
  Object.defineProperty(provided.grant, 'name', { value: 'TicketGrant' }); // error messages have it
  return provided;
}
