import { Injectable } from '@nestjs/common';
import { lineageByAgent, type TokenLineage } from '../access-token/token-lineage.js';
import type { AgentPrincipal } from '../bearer/principal.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import type { GrantResult } from './grant.js';

/** Finds out what the token of a grant descends from, and with whose generations it ends. */
@Injectable()
export class CustomerLineages {
  constructor(private readonly identities: Identities) {}

  /**
   * A grant that does not say which generation of the customer it has read costs one more statement.
   *
   * @throws OAuthError `invalid_grant` when the customer was erased meanwhile
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
