import { Get, HttpCode, Post } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  Caller,
  ClientRequest,
  OAuthError,
  PublicController,
  randomSecret,
  ValidatedBody,
} from 'customer-authorization-service/grant';
import type { RouteKit } from '../../../src/routes/route-kit.js';
import { moduleOf } from '../grant-of.js';

export const CLAIM = 'POST /v2/customer/kit_claim';

class ClaimBody {
  @IsString()
  client_id!: string;

  @IsString()
  organization_id!: string;

  @Matches(/^[\w-]{43}$/)
  claim!: string;
}

/** A page without a bearer token confirms a claim of its organization. The claims are in memory, for all processes. */
export function claimRoute(mistake?: string): RouteKit {
  const owners = new Map<string, string>();

  @PublicController('v2/customer/kit_claim')
  class ClaimController {
    @Post()
    @ApiRoute({ summary: 'Confirm a claim' })
    @HttpCode(200)
    confirm(@ClientRequest(ClaimBody) { body, organization }: ClientRequest<ClaimBody>): object {
      const owner = owners.get(body.claim);
      if (owner !== organization?.id && !(owner && mistake)) throw OAuthError.invalidRequest('claim: unknown');
      return {};
    }
  }

  return {
    modules: [moduleOf({ controllers: [ClaimController] })],
    callers: [],
    resends: false,
    valid: ({ clientId: client_id, organizationId: organization_id }) => {
      const claim = randomSecret('base64url');
      owners.set(claim, organization_id);
      return { body: { client_id, organization_id, claim } };
    },
  };
}

export const CONTACTS = 'GET /v2/customer/kit_contacts';

class ContactsResponse {
  @IsString({ each: true })
  emails!: string[];
}

/** An agent lists the contacts of its organization. The contacts are in memory, for all processes. */
export function contactsRoute(mistake?: string): RouteKit {
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

  return {
    modules: [moduleOf({ controllers: [ContactsController] })],
    callers: ['agent'],
    agentScope: 'contacts:list',
    actsOn: 'own organization',
    valid: ({ organizationId }) => {
      contacts.push({ organizationId, email: `contact.${10_000 + contacts.length}@example.com` });
      return {};
    },
  };
}

export const VISIT = 'POST /v2/customer/kit_visit';

class VisitBody {
  @Matches(/^visitor-\d{1,9}$/)
  visitor!: string;
}

class VisitResponse {
  @IsString({ each: true })
  visitors!: string[];
}

/** An agent adds a visitor to the list of its organization. The visitors are in memory, for all processes. */
export function visitRoute(mistake?: string): RouteKit {
  const visits: { organizationId: string; visitor: string }[] = [];
  let count = 0;

  @PublicController('v2/customer/kit_visit')
  class VisitController {
    @Post()
    @ApiRoute({ summary: 'Add a visitor', response: VisitResponse })
    @HttpCode(200)
    add(
      @Caller(AgentGuard('visits:add')) { organizationId }: AgentPrincipal,
      @ValidatedBody(VisitBody) { visitor }: VisitBody,
    ): VisitResponse {
      visits.push({ organizationId, visitor });
      const isShown = (visit: { organizationId: string }) =>
        mistake === 'shows the visitors of all organizations' || visit.organizationId === organizationId;
      return { visitors: visits.filter(isShown).map((visit) => visit.visitor) };
    }
  }

  return {
    modules: [moduleOf({ controllers: [VisitController] })],
    callers: ['agent'],
    agentScope: 'visits:add',
    actsOn: 'own organization',
    guessable: false,
    valid: () => ({ body: { visitor: `visitor-${10_000 + count++}` } }),
  };
}
