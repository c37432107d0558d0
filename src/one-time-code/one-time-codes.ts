import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { endedCondition } from '../access-token/ended-statement.js';
import type { RevocableClaims, TokenLineage } from '../access-token/token-lineage.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { callerNetwork } from '../platform/request-context/caller-network.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { traced } from '../platform/tracing/tracing.js';
import { CodeAudit } from './code-audit.js';
import { grantedAt, lineageOf, redeemableCode, revocableClaims, storedOrigin } from './code-origin.js';
import { assertProofMatches, type CodeProof } from './code-proof.js';
import { CodeReuse } from './code-reuse.js';
import { type CodeRow, FIND_CODE, INSERT_CODE, redeemStatement } from './code-statements.js';
import type { CodeKind } from './one-time-code.entity.js';
import type { RedemptionSteps } from './redemption.js';

/** The stored content of a code. */
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
  /** The lineage of the token that the code gives. */
  lineage: TokenLineage;
}

export interface RedeemedCode {
  subject: string;
  organizationId: string;
  scope: string | null;
  /** The group of the customer of a transfer token; the empty string if there is none. */
  groupId: string;
  lineage: TokenLineage;
  /** When access was granted, in milliseconds since 1970. */
  grantedAt: number;
  /** The `jti` of the new token. A replay of the code ends the token by this id. */
  attempt: string;
}

/**
 * Issues and redeems transfer tokens and authorization codes, which can be redeemed once
 * (docs/decisions/0005-replays-descendants-generations.md).
 */
@Injectable()
export class OneTimeCodes {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
    private readonly configuration: Configuration,
    private readonly audit: CodeAudit,
    private readonly reuse: CodeReuse,
  ) {}

  /** Issues a code that is valid for `ttlSeconds`. The database stores only its hash. */
  async issue(kind: CodeKind, content: CodeContent, ttlSeconds: number): Promise<string> {
    const code = `${this.configuration.TOKEN_REGION}:${randomSecret('base64url')}`;
    const { clientId, subject, organizationId, scope = null, redirectUri = null, codeChallenge = null } = content;
    const now = this.clock.now();
    const origin = storedOrigin(content.bearer, content.lineage, now / 1000);
    const expires = new Date(now + ttlSeconds * 1000);
    await this.database.insert(INSERT_CODE, [
      sha256(code),
      kind,
      clientId,
      subject,
      organizationId,
      scope,
      redirectUri,
      codeChallenge,
      origin,
      expires,
    ]);
    this.audit.issued({ kind, client_id: clientId, subject, organization_id: organizationId });
    return code;
  }

  /**
   * Redeems a code (protocol §3.6). A wrong client, redirect URI or verifier leaves the code usable and ends nothing. A
   * second use is rejected. If it is a replay (protocol §3.7), it also ends the tokens that the first use gave.
   *
   * @param steps what the redemption gives in addition to the token; if a step throws, the code stays usable
   * @throws OAuthError `invalid_grant`
   */
  redeem(kind: CodeKind, code: string, proof: CodeProof, steps?: RedemptionSteps): Promise<RedeemedCode> {
    return traced('redemption', { 'cas.code_kind': kind }, () => this.redeemByHash(kind, sha256(code), proof, steps));
  }

  private async redeemByHash(
    kind: CodeKind,
    hash: string,
    proof: CodeProof,
    steps: RedemptionSteps | undefined,
  ): Promise<RedeemedCode> {
    const row = await this.find(hash);
    assertProofMatches(row, kind, proof);
    const network = callerNetwork(hash);
    if (row.consumed_for !== null) return this.reuse.reject(row, network);
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('code: expired');
    await steps?.prepare?.(redeemableCode(row));
    const attempt = randomUUID();
    if (!(await this.markRedeemed(hash, row, { attempt, network }, steps))) {
      const current = (await this.find(hash)) ?? row;
      // A redemption by this attempt, whose response was lost, is not a first use by another caller.
      if (current.consumed_by === null || current.consumed_by === attempt) await this.assertNotEnded(row);
      return this.reuse.reject(current, network);
    }
    this.audit.redeemed(row, attempt);
    const { subject, organization_id: organizationId, scope, group_id } = row;
    const granted = { lineage: lineageOf(row), grantedAt: grantedAt(row), attempt };
    return { subject, organizationId, scope, groupId: group_id ?? '', ...granted };
  }

  /**
   * The UPDATE decides. With steps that write, it is part of their transaction, so that the code and what it gives are
   * stored together or not at all.
   */
  private async markRedeemed(
    hash: string,
    row: CodeRow,
    { attempt, network }: { attempt: string; network: string | null },
    steps: RedemptionSteps | undefined,
  ): Promise<boolean> {
    const { condition, parameters } = endedCondition(revocableClaims(row));
    const statement = redeemStatement(condition);
    const redemption = [attempt, network, hash, new Date(this.clock.now()), attempt, ...parameters] as const;
    if (!steps?.store && !steps?.mustBegin?.())
      return (await this.database.executeIdempotent(statement, [...redemption])) === 1;
    return this.database.transaction(async (manager) => {
      await steps.begin?.(manager);
      if ((await writeIn(manager, statement, [...redemption])) !== 1) return false;
      await steps.store?.(manager, attempt);
      return true;
    });
  }

  private async assertNotEnded(row: CodeRow): Promise<void> {
    if (await this.denylist.hasEnded(revocableClaims(row)))
      throw OAuthError.invalidGrant('code: the token that created it has ended');
  }

  private async find(hash: string): Promise<CodeRow | undefined> {
    const [row] = await this.database.select(FIND_CODE, [hash]);
    return row;
  }
}
