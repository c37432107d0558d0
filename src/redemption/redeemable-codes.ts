import type { InactiveReason, StoredToken } from '../access-token/inactive-reason.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { isPkceSatisfied } from '../oauth/pkce.js';
import type { Audit } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import type { Clock } from '../platform/clock.js';
import type { Configuration } from '../platform/configuration/configuration.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { type CallerNetworks, isDuplicateUse, type Redemption } from './caller-networks.js';
import { auditRedeemable, type CodeKind, type RedeemableParties } from './redemption-audit.js';

/** The columns of a session that decide about its code. */
export interface CodeRow extends Redemption {
  id: string;
  kind: string;
  client_id: string | null;
  /** Of the customer or agent. */
  organization_id: string;
  /** Only of an authorization code. */
  redirect_uri?: string | null;
  code_challenge: string | null;
  expires_at: Date | string;
}

/** What the token request proves besides the code. */
export interface CodeProof {
  clientId: string;
  /** Only for an authorization code. */
  redirectUri?: string;
  codeVerifier?: string | undefined;
}

/** A code that its client may redeem now. */
export interface FoundCode<Row> {
  row: Row;
  codeHash: string;
  /** An HMAC of the network of this request. */
  network: string | null;
}

/**
 * Codes that can be redeemed once (protocol §3.6 and §3.7). A redeemed code is the session that it gave. The sessions of
 * customers and those of agents are in tables of their own.
 */
export abstract class RedeemableCodes<Row extends CodeRow> {
  constructor(
    private readonly kind: CodeKind,
    protected readonly clock: Clock,
    protected readonly configuration: Configuration,
    private readonly networks: CallerNetworks,
    private readonly audit: Audit,
  ) {}

  protected abstract rowOf(codeHash: string): Promise<Row | undefined>;

  /** The customer or agent. */
  protected abstract subjectOf(row: Row): AuditParty;

  /** Ends the session that a redemption gave, with all that was made with it. */
  protected abstract end(row: Row): Promise<unknown>;

  /** Why the code has ended although it has a row; `undefined` if it has not. */
  protected endedReason(_row: Row): InactiveReason | undefined {
    return undefined;
  }

  /** A new code, and the columns of its session, which have only its hash. */
  protected newCode(ttlSeconds: number) {
    const code = `${this.configuration.TOKEN_REGION}:${randomSecret('base64url')}`;
    const now = this.clock.now();
    const expiresAt = new Date(now + ttlSeconds * 1000);
    return { code, columns: { id: uuidv7(now), kind: 'code', codeHash: sha256(code), expiresAt } as const };
  }

  /**
   * Finds a code. A wrong client, redirect URI or verifier leaves it usable and ends nothing.
   *
   * @throws OAuthError `invalid_grant`
   */
  async find(code: string, proof: CodeProof): Promise<FoundCode<Row>> {
    const codeHash = sha256(code);
    const row = await this.rowOf(codeHash);
    if (!row) throw OAuthError.invalidGrant('code: unknown');
    const violation = violationOf(row, proof);
    if (violation !== undefined) throw OAuthError.invalidGrant(`code: ${violation}`);
    const network = this.networks.current(codeHash);
    if (row.kind !== 'code') return this.rejectReuse(row, network);
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('code: expired');
    if (this.endedReason(row)) throw OAuthError.invalidGrant('code: the token that created it has ended');
    return { row, codeHash, network };
  }

  /** @throws OAuthError `invalid_grant` for a code that was redeemed or has ended since it was found */
  protected async rejectLost({ codeHash, network }: FoundCode<Row>): Promise<never> {
    const row = await this.rowOf(codeHash);
    if (row && row.kind !== 'code') return this.rejectReuse(row, network);
    throw OAuthError.invalidGrant('code: the token that created it has ended, or its agent has changed');
  }

  /** Describes a code for the operator; `undefined` if it is not stored. */
  async describe(code: string): Promise<StoredToken | undefined> {
    const row = await this.rowOf(sha256(code));
    if (!row) return undefined;
    const inactiveReason = this.inactiveReasonOf(row);
    return {
      kind: this.kind === 'transfer_token' ? 'transfer token' : 'authorization code',
      clientId: row.client_id ?? '',
      ...{ subject: this.subjectOf(row).id ?? '', organizationId: row.organization_id },
      ...{ expiresAt: timeOf(row.expires_at), session: row.id },
      ...(inactiveReason && { inactiveReason }),
    };
  }

  protected auditIssue(parties: RedeemableParties): void {
    auditRedeemable(this.audit, this.kind, 'issued', parties);
  }

  protected auditUse(action: 'redeemed' | 'replayed', row: Row): void {
    const { id: session, client_id: clientId, organization_id: organizationId } = row;
    const parties = { subject: this.subjectOf(row), clientId: clientId ?? '', organizationId, session };
    auditRedeemable(this.audit, this.kind, action, parties);
  }

  /**
   * A second use is a duplicate soon after the first use and from its network, or a replay, which ends the session that
   * the first use gave, with everything that was made with it (protocol §3.7). @throws OAuthError `invalid_grant`
   */
  private async rejectReuse(row: Row, network: string | null): Promise<never> {
    if (isDuplicateUse(row, network)) throw OAuthError.invalidGrant('code: duplicate use');
    await this.end(row);
    this.auditUse('replayed', row);
    throw OAuthError.invalidGrant('code: replayed');
  }

  private inactiveReasonOf(row: Row): InactiveReason | undefined {
    if (row.kind !== 'code') return 'already_used';
    return timeOf(row.expires_at) <= this.clock.now() ? 'expired' : this.endedReason(row);
  }
}

function violationOf(row: CodeRow, { clientId, redirectUri, codeVerifier }: CodeProof): string | undefined {
  if (row.client_id !== clientId) return 'of another client';
  // The redirect URI must be exactly the one of the authorization request (RFC 6749 §4.1.3).
  if (row.redirect_uri !== redirectUri) return 'sent to another redirect_uri';
  return isPkceSatisfied(row.code_challenge, codeVerifier) ? undefined : 'the verifier does not fit';
}
