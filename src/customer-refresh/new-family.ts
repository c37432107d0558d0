import { Logger } from '@nestjs/common';
import type { Denylist } from '../access-token/denylist.js';
import { OAuthError } from '../oauth/oauth-error.js';
import type { RedeemableCode, RedemptionSteps } from '../one-time-code/redemption.js';
import type { Clock } from '../platform/clock.js';
import type { CustomerFamilies } from '../refresh-token/customer-families.js';
import { revocableClaims } from '../refresh-token/family-content.js';
import type { FamilyDeletion } from '../refresh-token/family-deletion.js';
import type { RefreshAudit } from '../refresh-token/refresh-audit.js';
import type { RefreshContent } from '../refresh-token/refresh-content.js';
import type { RefreshTokens } from '../refresh-token/refresh-tokens.js';

interface FamilyServices {
  tokens: RefreshTokens;
  families: CustomerFamilies;
  deletion: FamilyDeletion;
  denylist: Denylist;
  clock: Clock;
  audit: RefreshAudit;
}

/**
 * The refresh family of a transferred customer. Only the response has its refresh token, so the family leads nowhere
 * unless the redemption succeeds. Its id is that of the redemption, so that a replay of the code ends the family.
 */
export class NewFamily implements RedemptionSteps {
  refreshToken = '';
  private readonly logger = new Logger(NewFamily.name);
  private content: RefreshContent;
  private id = '';

  constructor(private readonly services: FamilyServices) {}

  async prepare({ subject, clientId, organizationId, lineage }: RedeemableCode): Promise<void> {
    this.content = { owner: { kind: 'customer', id: subject }, clientId, organizationId, scope: '', lineage };
  }

  async store(attempt: string): Promise<void> {
    const { tokens, denylist, clock } = this.services;
    const begunAt = clock.now();
    this.id = attempt;
    this.refreshToken = await tokens.begin(attempt, this.content, begunAt);
    // An erasure deletes the families that it finds. It may have run after the check of the code and before the INSERT.
    if (!(await denylist.hasEnded(revocableClaims(attempt, this.content, begunAt)))) return;
    await this.discard();
    throw OAuthError.invalidGrant('code: its customer or the token that created it has ended');
  }

  discard(): Promise<void> {
    return this.services.deletion.delete(this.id);
  }

  /**
   * Runs after the redemption, so that an attempt without success deletes no other family. An error must not replace
   * the response, which has the only token of this family. The next new family deletes what remains.
   */
  async deleteSurplus(): Promise<void> {
    try {
      await this.services.families.deleteSurplus(this.content.owner.id);
    } catch (error) {
      this.logger.warn(`a customer has too many refresh families: ${(error as Error).message}`);
    }
  }

  auditIssued(): void {
    this.services.audit.issued(this.id, this.content);
  }
}
