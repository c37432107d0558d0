import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import type { InactiveReason, StoredToken } from '../access-token/inactive-reason.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { sha256 } from '../platform/secret.js';
import { revocableClaims } from './code-origin.js';
import { type CodeRow, FIND_CODE } from './code-statements.js';

/** Finds out for the operator what a transfer token or an authorization code is. It changes nothing. */
@Injectable()
export class CodeLookup {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
  ) {}

  /** Resolves to `undefined` if no such code is stored. */
  async find(code: string): Promise<StoredToken | undefined> {
    const [row] = await this.database.select(FIND_CODE, [sha256(code)]);
    if (!row) return undefined;
    const { kind, client_id: clientId, subject, organization_id: organizationId, expires_at, consumed_by: jti } = row;
    const inactiveReason = await this.inactiveReasonOf(row);
    return {
      kind: kind === 'transfer' ? 'transfer token' : 'authorization code',
      ...{ clientId, subject, organizationId, expiresAt: timeOf(expires_at) },
      ...(jti && { family: jti }),
      ...(inactiveReason && { inactiveReason }),
    };
  }

  private inactiveReasonOf(row: CodeRow): InactiveReason | undefined | Promise<InactiveReason | undefined> {
    if (row.consumed_for !== null) return 'already_used';
    if (timeOf(row.expires_at) <= this.clock.now()) return 'expired';
    return this.denylist.endedReason(revocableClaims(row));
  }
}
