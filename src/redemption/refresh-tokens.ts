import type { InactiveReason, StoredToken } from '../access-token/inactive-reason.js';
import { OAuthError } from '../oauth/oauth-error.js';
import type { Audit } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import type { Clock } from '../platform/clock.js';
import type { Configuration } from '../platform/configuration/configuration.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { derivedSecret, randomSecret, sha256 } from '../platform/secret.js';
import { auditRedeemable, type RedeemableParties } from './redemption-audit.js';

const REFRESH_ID_BYTES = 16;
/** The region, then F with 16 bytes and R with 32 bytes, both in base64url. */
const REFRESH_TOKEN = /^(?<region>[A-Za-z0-9-]{1,16}):(?<id>[\w-]{22})\.(?<secret>[\w-]{43})$/;

/** F, which all refresh tokens of a session have in common, and R of one of them. */
interface TokenParts {
  id: string;
  secret: string;
}

/** The columns of a session that decide about its refresh tokens. */
export interface RefreshRow {
  id: string;
  client_id: string;
  /** Of the customer or agent. */
  organization_id: string;
  /** Hashes of R. */
  current_hash: string;
  previous_hash: string | null;
  successor_nonce: string | null;
  expires_at: Date | string;
}

/** What a use of the current refresh token stores. */
export interface Rotation {
  /** Hashes of R. */
  nextHash: string;
  usedHash: string;
  nonce: string;
  expiresAt: Date;
}

/** A new refresh token, and the columns of its session. */
export interface FirstRefreshToken {
  refreshToken: string;
  columns: { refreshIdHash: string; currentHash: string; expiresAt: Date };
}

/**
 * Refresh tokens: rotated on each use, with detection of reuse (protocol §3.9, RFC 9700 §4.14). The sessions of customers
 * and those of agents are in tables of their own.
 */
export abstract class RefreshTokens<Row extends RefreshRow> {
  /** @internal */
  constructor(
    protected readonly clock: Clock,
    private readonly configuration: Configuration,
    protected readonly audit: Audit,
  ) {}

  protected abstract find(refreshIdHash: string): Promise<Row | undefined>;

  /** The customer or agent. */
  protected abstract subjectOf(row: Row): AuditParty;

  /** Stores the successor. @returns false if the current token is not the used one any more */
  protected abstract rotate(row: Row, rotation: Rotation): Promise<boolean>;

  /** Ends the session with its access tokens, and all that was obtained with them. */
  protected abstract end(row: Row): Promise<unknown>;

  /** Why the session has ended although it has a row; `undefined` if it has not. */
  protected endedReason(_row: Row): InactiveReason | undefined {
    return undefined;
  }

  /** When the session ends, if it is not used again. */
  protected expiryOf(_row: Row): Date {
    return this.expiry();
  }

  /** Notes a retry. @returns false if the session has ended, or the successor was used */
  protected noteRetry(_row: Row, _usedHash: string): Promise<boolean> {
    return Promise.resolve(true);
  }

  protected auditUse(action: 'issued' | 'redeemed' | 'replayed', parties: RedeemableParties): void {
    auditRedeemable(this.audit, 'refresh_token', action, parties);
  }

  protected first(expiresAt = this.expiry()): FirstRefreshToken {
    const [id, secret] = [randomSecret('base64url', REFRESH_ID_BYTES), randomSecret('base64url')];
    const columns = { refreshIdHash: sha256(id), currentHash: sha256(secret), expiresAt };
    return { refreshToken: this.tokenOf(id, secret), columns };
  }

  /**
   * Replaces a refresh token by its successor. A use of the predecessor while its successor is unused is a retry, and gets
   * the same successor.
   *
   * @param decide decides about the access; if it throws, the token stays usable
   * @throws OAuthError `invalid_grant`. Every other use of a token of the session ends the session
   */
  async refresh<Access>(
    refreshToken: string,
    clientId: string,
    decide: (row: Row) => Access | Promise<Access>,
  ): Promise<{ row: Row; access: Access; refreshToken: string }> {
    const token = this.partsOf(refreshToken);
    if (!token) throw OAuthError.invalidGrant('refresh token: malformed');
    const row = await this.storedRow(token, clientId);
    const used = sha256(token.secret);
    // also of an expired session, which may have made sessions that live on
    if (row.current_hash !== used && row.previous_hash !== used) return this.rejectReuse(row);
    this.assertUsable(row);
    const access = await decide(row);
    const successor =
      row.current_hash === used ? await this.successor(row, token) : await this.retriedSuccessor(row, token);
    this.auditUse('redeemed', this.partiesOf(row));
    return { row, access, refreshToken: this.tokenOf(token.id, successor) };
  }

  /** The session of a refresh token. With `clientId` only that of this client is found. */
  async sessionOf(refreshToken: string, clientId?: string): Promise<Row | undefined> {
    const token = this.partsOf(refreshToken);
    const row = token && (await this.find(sha256(token.id)));
    return row && (clientId === undefined || row.client_id === clientId) ? row : undefined;
  }

  /** Describes a refresh token for the operator; `undefined` if no session with such a token is stored. */
  async describe(refreshToken: string): Promise<StoredToken | undefined> {
    const token = this.partsOf(refreshToken);
    const row = token && (await this.find(sha256(token.id)));
    if (!row) return undefined;
    const inactiveReason = this.inactiveReasonOf(row, sha256(token.secret));
    return {
      kind: 'refresh token',
      clientId: row.client_id,
      ...{ subject: this.subjectOf(row).id ?? '', organizationId: row.organization_id },
      expiresAt: timeOf(row.expires_at),
      session: row.id,
      ...(inactiveReason && { inactiveReason }),
    };
  }

  private inactiveReasonOf(row: Row, hash: string): InactiveReason | undefined {
    const endedReason = this.endedReason(row);
    if (endedReason) return endedReason;
    if (timeOf(row.expires_at) <= this.clock.now()) return 'expired';
    // the predecessor may be used again, until its successor is used
    return row.current_hash === hash || row.previous_hash === hash ? undefined : 'already_used';
  }

  private partiesOf(row: Row): RedeemableParties {
    const { id: session, client_id: clientId, organization_id: organizationId } = row;
    return { subject: this.subjectOf(row), clientId, organizationId, session };
  }

  private async storedRow({ id }: TokenParts, clientId: string): Promise<Row> {
    const row = await this.find(sha256(id));
    if (!row) throw OAuthError.invalidGrant('refresh token: unknown');
    if (row.client_id !== clientId) throw OAuthError.invalidGrant('refresh token: belongs to another client');
    return row;
  }

  private assertUsable(row: Row): void {
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('refresh token: expired');
    if (this.endedReason(row)) throw OAuthError.invalidGrant('refresh token: its session has ended');
  }

  /** A parallel use of the same token gets the same successor. */
  private async successor(row: Row, token: TokenParts): Promise<string> {
    const [usedHash, nonce] = [sha256(token.secret), randomSecret('base64url')];
    const next = derivedSecret(token.secret, nonce);
    const rotation = { nextHash: sha256(next), usedHash, nonce, expiresAt: this.expiryOf(row) };
    if (await this.rotate(row, rotation)) return next;
    const current = await this.storedRow(token, row.client_id);
    return current.previous_hash === usedHash ? successorOf(current, token) : this.rejectReuse(current);
  }

  private async retriedSuccessor(row: Row, token: TokenParts): Promise<string> {
    if (await this.noteRetry(row, sha256(token.secret))) return successorOf(row, token);
    return this.rejectReuse(await this.storedRow(token, row.client_id));
  }

  /** Ends the session, because the service cannot distinguish the client from a thief that has one of its tokens. */
  private async rejectReuse(row: Row): Promise<never> {
    await this.end(row);
    this.auditUse('replayed', this.partiesOf(row));
    throw OAuthError.invalidGrant('refresh token: used again');
  }

  /** `undefined` for a text that does not have the form of a refresh token of this region. */
  private partsOf(refreshToken: string): TokenParts | undefined {
    const parts = REFRESH_TOKEN.exec(refreshToken)?.groups;
    return parts?.region === this.configuration.TOKEN_REGION ? (parts as unknown as TokenParts) : undefined;
  }

  private tokenOf(id: string, secret: string): string {
    return `${this.configuration.TOKEN_REGION}:${id}.${secret}`;
  }

  private expiry(): Date {
    return new Date(this.clock.now() + this.configuration.REFRESH_TOKEN_TTL * 1000);
  }
}

/** The database has neither of the two tokens, and so cannot compute the successor. */
function successorOf({ successor_nonce }: RefreshRow, { secret }: TokenParts): string {
  return derivedSecret(secret, successor_nonce as string);
}
