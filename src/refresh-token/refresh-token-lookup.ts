import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { StoredToken } from '../access-token/stored-token.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-time.js';
import { sha256 } from '../platform/secret.js';
import { type FamilyRow, FIND_FAMILY } from './refresh-statements.js';

/** Finds out for the operator what a refresh token is. It changes nothing. */
@Injectable()
export class RefreshTokenLookup {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
  ) {}

  /** Resolves to `undefined` if no such refresh token is stored. */
  async find(refreshToken: string): Promise<StoredToken | undefined> {
    const hash = sha256(refreshToken);
    const [row] = await this.database.select(FIND_FAMILY, [hash]);
    if (!row) return undefined;
    const { id: family, client_id: clientId, agent_id: subject, organization_id: organizationId, expires_at } = row;
    const inactiveReason = await this.inactiveReasonOf(row, hash);
    return {
      kind: 'refresh token',
      ...{ family, clientId, subject, organizationId, expiresAt: timeOf(expires_at) },
      ...(inactiveReason && { inactiveReason }),
    };
  }

  private async inactiveReasonOf(row: FamilyRow, hash: string): Promise<InactiveReason | undefined> {
    const { id: jti, agent_id: sub, client_id, begun_at, generation } = row;
    const claims = {
      jti,
      sub,
      client_id,
      iat: timeOf(begun_at) / 1000,
      aud: 'agent-api',
      gen: generation ?? 0,
    } as const;
    const endedReason = await this.denylist.endedReason(claims);
    if (endedReason) return endedReason;
    if (row.ended_at !== null) return 'family_revoked';
    if (timeOf(row.expires_at) <= this.clock.now()) return 'expired';
    return row.current_hash === hash ? undefined : 'already_used';
  }
}
