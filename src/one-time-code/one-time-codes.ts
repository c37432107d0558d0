import { randomUUID } from 'node:crypto';
import { Injectable, ServiceUnavailableException } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { CallerNetworks, isSameNetwork } from '../access-token/caller-networks.js';
import { Denylist } from '../access-token/denylist.js';
import { endedCondition } from '../access-token/ended-statement.js';
import { RevocationLimit } from '../access-token/feed/revocation-limit.js';
import type { InactiveReason, StoredToken } from '../access-token/inactive-reason.js';
import type { RevocableClaims, TokenLineage } from '../access-token/token-lineage.js';
import { Audit, party } from '../audit/audit.js';
import { CustomerDataParticipants } from '../identity/customer-data-participants.js';
import type { ExportedTable } from '../identity/export-page.js';
import { Identities } from '../identity/identities.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { traced } from '../platform/request-context/request-context.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { assertProofMatches, type CodeProof } from './code-proof.js';
import type { CodeKind } from './one-time-code.entity.js';
import {
  type CodeRow,
  FIND_CODE,
  INSERT_CODE,
  type RedeemableCode,
  redeemableCode,
  redeemStatement,
  revocableClaims,
  type StoredOrigin,
} from './stored-codes.js';

/** A second use from the same network within this time is a duplicate, not a replay (protocol §3.7). */
const DUPLICATE_WINDOW_MS = 2_000;

export interface CodeContent {
  clientId: string;
  /** The customer or agent. */
  subject: string;
  organizationId: string;
  scope?: string;
  redirectUri?: string;
  codeChallenge?: string | undefined;
  /** The claims of the bearer or of the session that creates the code. */
  bearer: RevocableClaims;
  lineage: TokenLineage;
}

export interface RedeemedCode extends RedeemableCode {
  /** The `jti` of the new token, or its beginning, by which a replay of the code ends the token. */
  attempt: string;
}

/** What a redemption does in addition to its token. If a step throws, the code stays usable. */
export interface RedemptionSteps {
  prepare?(code: RedeemableCode): Promise<void>;
  /** Stores what the redemption gives, in its transaction. It may run again after a rollback. */
  store?(manager: EntityManager, code: RedeemedCode): Promise<void>;
}

/** The transfer tokens of a customer, without the challenge. An erasure ends them by the generation, and they expire. */
const EXPORTED_TABLE: ExportedTable = {
  name: 'one_time_code',
  find: `SELECT hash, kind, client_id, subject, organization_id, made_with, expires_at, consumed_at, consumed_by
      FROM one_time_code WHERE kind = 'transfer' AND subject = ? ORDER BY hash`,
  times: ['expires_at', 'consumed_at'],
  shown: ({ hash: _, ...row }) => row,
};

/** Transfer tokens and authorization codes, which can be redeemed once (decision 0005). */
@Injectable()
export class OneTimeCodes {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
    private readonly identities: Identities,
    private readonly revocationLimit: RevocationLimit,
    private readonly networks: CallerNetworks,
    participants: CustomerDataParticipants,
  ) {
    participants.own.push({ tables: [EXPORTED_TABLE] });
  }

  /** The database stores only the hash of the code. */
  async issue(kind: CodeKind, content: CodeContent, ttlSeconds: number): Promise<string> {
    const code = `${this.configuration.TOKEN_REGION}:${randomSecret('base64url')}`;
    const { clientId, subject, organizationId, scope = null, redirectUri = null, codeChallenge = null } = content;
    const now = this.clock.now();
    const origin: StoredOrigin = { jti: content.bearer.jti, lineage: content.lineage, issued_at: now / 1000 };
    const expires = new Date(now + ttlSeconds * 1000);
    const about = [clientId, subject, organizationId, scope, redirectUri, codeChallenge] as const;
    await this.database.insertIdempotent(INSERT_CODE, [sha256(code), kind, ...about, JSON.stringify(origin), expires]);
    this.record({ kind, client_id: clientId, subject, organization_id: organizationId }, 'issued');
    return code;
  }

  /**
   * A wrong client, redirect URI or verifier leaves the code usable and ends nothing. A second use that is a replay
   * also ends the tokens of the first use (protocol §3.6, §3.7). @throws OAuthError `invalid_grant`
   */
  redeem(kind: CodeKind, code: string, proof: CodeProof, steps: RedemptionSteps = {}): Promise<RedeemedCode> {
    return traced('redemption', { 'cas.code_kind': kind }, async () => {
      const hash = sha256(code);
      const row = await this.find(hash);
      assertProofMatches(row, kind, proof);
      const network = this.networks.current(hash);
      if (row.consumed_for !== null) return this.rejectReuse(row, network);
      if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('code: expired');
      const attempt = randomUUID();
      const redeemed: RedeemedCode = { ...redeemableCode(row), attempt };
      await steps.prepare?.(redeemed);
      if (!(await this.markRedeemed(hash, row, redeemed, network, steps))) {
        const current = (await this.find(hash)) ?? row;
        // A redemption by this attempt, whose response was lost, is not a first use by another caller.
        if (current.consumed_by === null || current.consumed_by === attempt) await this.assertNotEnded(row);
        return this.rejectReuse(current, network);
      }
      this.record(row, 'redeemed', attempt);
      return redeemed;
    });
  }

  async describe(code: string): Promise<StoredToken | undefined> {
    const row = await this.find(sha256(code));
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

  /** The UPDATE decides. With further writes it is part of their transaction, so that all are stored or none. */
  private async markRedeemed(
    hash: string,
    row: CodeRow,
    code: RedeemedCode,
    network: string | null,
    steps: RedemptionSteps,
  ): Promise<boolean> {
    const { condition, parameters } = endedCondition(revocableClaims(row));
    const statement = redeemStatement(condition);
    const { attempt } = code;
    const redemption = [attempt, network, hash, new Date(this.clock.now()), attempt, ...parameters] as const;
    const isTransfer = row.kind === 'transfer';
    const { store } = steps;
    if (!store) {
      if (isTransfer && !(await this.identities.noteToken(row.subject, row.token_day))) throw customerErased();
      return (await this.database.executeIdempotent(statement, [...redemption])) === 1;
    }
    const redeemed = this.database.transaction(async (manager) => {
      // the first statement: an erasure, an end of sessions or a purge comes before it, or waits
      if (isTransfer && !(await this.identities.noteTokenIn(manager, row.subject))) throw customerErased();
      if ((await writeIn(manager, statement, [...redemption])) !== 1) return false;
      await store(manager, code);
      return true;
    });
    return redeemed.catch(async (error) => {
      // the response to the COMMIT may be lost: the row decides, which has the id of the attempt
      if (!(error instanceof ServiceUnavailableException)) throw error;
      if ((await this.find(hash))?.consumed_by !== attempt) throw error;
      return true;
    });
  }

  /**
   * A second use is a duplicate soon after the first use and from its network, or a replay, which ends everything that
   * the first use gave, refreshed tokens included (protocol §3.7). @throws OAuthError `invalid_grant`
   */
  private async rejectReuse(row: CodeRow, network: string | null): Promise<never> {
    const { consumed_by: jti, consumed_for, consumed_network } = row;
    if (jti === null || consumed_for === null) throw OAuthError.invalidGrant('code: expired');
    const isDuplicate = consumed_for >= 0 && consumed_for <= DUPLICATE_WINDOW_MS;
    if (isDuplicate && isSameNetwork(consumed_network, network)) throw OAuthError.invalidGrant('code: duplicate use');
    if (row.kind === 'transfer') await this.denylist.revokeFamily(jti, 'customer-api', this.revocationLimit.admits());
    else await this.denylist.revokeFamily(jti, 'agent-api');
    this.record(row, 'replayed', jti);
    throw OAuthError.invalidGrant('code: replayed');
  }

  private async inactiveReasonOf(row: CodeRow): Promise<InactiveReason | undefined> {
    if (row.consumed_for !== null) return 'already_used';
    if (timeOf(row.expires_at) <= this.clock.now()) return 'expired';
    return this.denylist.endedReason(revocableClaims(row));
  }

  private async assertNotEnded(row: CodeRow): Promise<void> {
    if (await this.denylist.hasEnded(revocableClaims(row)))
      throw OAuthError.invalidGrant('code: the token that created it has ended');
  }

  private async find(hash: string): Promise<CodeRow | undefined> {
    const [row] = await this.database.select(FIND_CODE, [hash]);
    if (!row || (row.consumed_for ?? 0) >= 0) return row;
    // The SELECT began before the redemption, or the clock of the database was set back. Another SELECT decides.
    return (await this.database.select(FIND_CODE, [hash]))[0];
  }

  /** @param jti of the token that the code gave. Audit events do not contain the hash of the code. */
  private record(
    { kind, client_id, subject, organization_id }: Pick<CodeRow, 'kind' | 'client_id' | 'subject' | 'organization_id'>,
    action: 'issued' | 'redeemed' | 'replayed',
    jti?: string,
  ): void {
    const isTransfer = kind === 'transfer';
    this.audit.record({
      event: `${isTransfer ? 'transfer_token' : 'authorization_code'}.${action}`,
      outcome: action === 'replayed' ? 'failure' : 'success',
      actor: party('client', client_id),
      subject: party(isTransfer ? 'customer' : 'agent', subject),
      organizationId: organization_id,
      clientId: client_id,
      ...(jti && { details: { jti } }),
    });
  }
}

const customerErased = () => OAuthError.invalidGrant('code: its customer was erased');
