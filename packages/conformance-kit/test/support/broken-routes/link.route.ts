import { HttpCode, Module, Post } from '@nestjs/common';
import { IsString, MaxLength } from 'class-validator';
import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  BearerGuard,
  Caller,
  ClientRequest,
  type Principal,
  PublicController,
  ValidatedBody,
} from 'customer-authorization-service/grant';
import { assertAgent } from '../../../../../src/bearer/principal.js';
import type { RouteKit } from '../../../src/routes/route-kit.js';

export const LINK = 'POST /v2/customer/kit_link';
const SCOPE = 'links:create';

/** A mistake of the author of a route for agents. The route without a mistake satisfies every rule. */
export type LinkMistake = 'requires no scope' | 'does not check the client in its body';

class LinkBody {
  @IsString()
  @MaxLength(128)
  client_id!: string;
}

/** Admits agents with any scope. */
class AnyAgentGuard extends BearerGuard {
  override admit(principal: Principal): AgentPrincipal {
    return assertAgent(principal);
  }
}

/** An agent creates a link for the page of a client. */
export function linkRoute(mistake?: LinkMistake): RouteKit {
  const guard = mistake === 'requires no scope' ? (AnyAgentGuard as ReturnType<typeof AgentGuard>) : AgentGuard(SCOPE);

  @PublicController('v2/customer/kit_link')
  class LinkController {
    @Post()
    @ApiRoute({ summary: 'Create a link' })
    @HttpCode(200)
    create(@Caller(guard) _agent: AgentPrincipal, @ClientRequest(LinkBody) _request: ClientRequest<LinkBody>): object {
      return {};
    }
  }

  @PublicController('v2/customer/kit_link')
  class UncheckedController {
    @Post()
    @ApiRoute({ summary: 'Create a link' })
    @HttpCode(200)
    create(@Caller(guard) _agent: AgentPrincipal, @ValidatedBody(LinkBody) _body: LinkBody): object {
      return {};
    }
  }

  const isUnchecked = mistake === 'does not check the client in its body';
  @Module({ controllers: [isUnchecked ? UncheckedController : LinkController] })
  class LinkModule {}

  return {
    modules: [LinkModule],
    callers: ['agent'],
    agentScope: SCOPE,
    actsOn: 'own organization',
    valid: ({ clientId }) => ({ body: { client_id: clientId } }),
  };
}
