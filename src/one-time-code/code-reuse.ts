import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { RevocationLimit } from '../access-token/feed/revocation-limit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { isSameNetwork } from '../platform/request-context/caller-network.js';
import { CodeAudit } from './code-audit.js';
import type { CodeRow } from './code-statements.js';

/** A second use from the same network within this time is a duplicate and not a replay (protocol §3.7). */
const DUPLICATE_WINDOW_MS = 2_000;

/** Second uses of a redeemed code (protocol §3.7). */
@Injectable()
export class CodeReuse {
  constructor(
    private readonly denylist: Denylist,
    private readonly revocations: RevocationLimit,
    private readonly audit: CodeAudit,
  ) {}

  /**
   * Rejects a second use: a duplicate soon after the first use and from its network, or a replay by a possible thief. A
   * replay ends everything that the first use gave.
   *
   * @throws OAuthError `invalid_grant`
   */
  async reject(row: CodeRow, network: string | null): Promise<never> {
    const { consumed_by: jti, consumed_for, consumed_network } = row;
    if (jti === null || consumed_for === null) throw OAuthError.invalidGrant('code: expired');
    if (consumed_for <= DUPLICATE_WINDOW_MS && isSameNetwork(consumed_network, network))
      throw OAuthError.invalidGrant('code: duplicate use');
    // Ends the whole family, refreshed tokens included.
    if (row.kind === 'transfer') await this.denylist.revokeFamily(jti, 'customer-api', this.revocations.admits());
    else await this.denylist.revokeFamily(jti, 'agent-api');
    this.audit.replayed(row, jti);
    throw OAuthError.invalidGrant('code: replayed');
  }
}
