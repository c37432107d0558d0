import { Get, Module } from '@nestjs/common';
import { IsString } from 'class-validator';
import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  Caller,
  PublicController,
} from 'customer-authorization-service/grant';
import type { RouteKit } from '../../../src/routes/route-kit.js';

export const CONTACTS = 'GET /v2/customer/kit_contacts';

/** A mistake of the author of a route. The route without a mistake satisfies every rule. */
export type ContactsMistake = 'lists all organizations';

class ContactsResponse {
  @IsString({ each: true })
  emails!: string[];
}

/** An agent lists the contacts of its organization. The contacts are in memory, for all processes. */
export function contactsRoute(mistake?: ContactsMistake): RouteKit {
  const contacts: { organizationId: string; email: string }[] = [];

  @PublicController('v2/customer/kit_contacts')
  class ContactsController {
    @Get()
    @ApiRoute({ summary: 'List the contacts', response: ContactsResponse })
    list(@Caller(AgentGuard('contacts:list')) { organizationId }: AgentPrincipal): ContactsResponse {
      const listed = contacts.filter((contact) => mistake || contact.organizationId === organizationId);
      return { emails: listed.map(({ email }) => email) };
    }
  }

  @Module({ controllers: [ContactsController] })
  class ContactsModule {}

  return {
    modules: [ContactsModule],
    callers: ['agent'],
    agentScope: 'contacts:list',
    actsOn: 'own organization',
    valid: ({ organizationId }) => {
      contacts.push({ organizationId, email: `contact.${10_000 + contacts.length}@example.com` });
      return {};
    },
  };
}
