import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { StoredToken } from '../access-token/stored-token.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-time.js';
import { sha256 } from '../platform/secret.js';
import { claimsOfFamily, contentOf } from './family-content.js';
import { type FamilyRow, FIND_FAMILY } from './family-statements.js';
import { partsOfToken } from './token-parts.js';

/** Finds out for the operator what a refresh token is. It changes nothing. */
@Injectable()
export class RefreshTokenLookup {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
  ) {}

  /** Resolves to `undefined` if no family of such a refresh token is stored. */
  async find(refreshToken: string): Promise<StoredToken | undefined> {
    const token = partsOfToken(refreshToken);
    if (!token) return undefined;
    const [row] = await this.database.select(FIND_FAMILY, [sha256(token.family)]);
    if (!row) return undefined;
    const { id: family, expires_at } = row;
    const { owner, clientId, organizationId } = contentOf(row);
    const inactiveReason = await this.inactiveReasonOf(row, sha256(token.secret));
    return {
      kind: 'refresh token',
      ...{ family, clientId, subject: owner.id, organizationId, expiresAt: timeOf(expires_at) },
      ...(inactiveReason && { inactiveReason }),
    };
  }

  private async inactiveReasonOf(row: FamilyRow, hash: string): Promise<InactiveReason | undefined> {
    const endedReason = await this.denylist.endedReason(claimsOfFamily(row));
    if (endedReason) return endedReason;
    if (row.ended_at !== null) return 'family_revoked';
    if (timeOf(row.expires_at) <= this.clock.now()) return 'expired';
    return row.current_hash === hash ? undefined : 'already_used';
  }
}
