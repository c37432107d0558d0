import { HttpCode, Module, Post } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import {
  AgentGuard,
  type AgentPrincipal,
  ApiRoute,
  Caller,
  PublicController,
  ValidatedBody,
} from 'customer-authorization-service/grant';
import type { RouteKit } from '../../../src/routes/route-kit.js';

export const VISIT = 'POST /v2/customer/kit_visit';

/** A mistake of the author of a route. The route without a mistake satisfies every rule. */
export type VisitMistake = 'shows the visitors of all organizations';

class VisitBody {
  @Matches(/^visitor-\d{1,9}$/)
  visitor!: string;
}

class VisitResponse {
  @IsString({ each: true })
  visitors!: string[];
}

/** An agent adds a visitor to the list of its organization. The visitors are in memory, for all processes. */
export function visitRoute(mistake?: VisitMistake): RouteKit {
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

  @Module({ controllers: [VisitController] })
  class VisitModule {}

  return {
    modules: [VisitModule],
    callers: ['agent'],
    agentScope: 'visits:add',
    actsOn: 'own organization',
    guessable: false,
    valid: () => ({ body: { visitor: `visitor-${10_000 + count++}` } }),
  };
}
