import { Injectable } from '@nestjs/common';
import { lineageByAgent, type TokenLineage } from '../access-token/token-lineage.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import type { GrantResult } from './grant.js';

/** Determines the lineage of a customer token: the tokens it descends from, and the generations with which it ends. */
@Injectable()
export class CustomerLineages {
  constructor(private readonly identities: Identities) {}

  /**
   * If the grant does not return the generation of the customer, it is read with one more statement.
   *
   * @throws OAuthError `invalid_grant` if the customer was erased in the meantime
   */
  async of(granted: GrantResult, agent: AgentPrincipal | undefined): Promise<TokenLineage> {
    if (granted.lineage) return granted.lineage;
    const gen = granted.generation ?? (await this.generationOf(granted.entityId));
    return agent ? lineageByAgent(agent.claims, gen) : { gen };
  }

  private async generationOf(entityId: string): Promise<number> {
    const generation = await this.identities.generationOf(entityId);
    if (generation === undefined) throw OAuthError.invalidGrant('the customer was erased');
    return generation;
  }
}
