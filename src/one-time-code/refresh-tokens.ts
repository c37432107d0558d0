import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-time.js';
import { randomSecret, sha256 } from '../platform/secret.js';

/** What a chain of refresh tokens stands for. */
export interface RefreshContent {
  clientId: string;
  agentId: string;
  organizationId: string;
  scope: string;
}

export interface Refreshed extends RefreshContent {
  /** The chain; the `jti` of its access tokens begins with it. */
  family: string;
  refreshToken: string;
}

interface FamilyRow {
  id: string;
  client_id: string;
  agent_id: string;
  organization_id: string;
  scope: string;
  current_hash: string;
  previous_hash: string | null;
  rotated_at: Date | string;
  ended_at: Date | string | null;
  expires_at: Date | string;
  /** Whether it has ended, or its agent or client since it began: 0 or 1. */
  revoked: number;
}

/** Milliseconds in which a client that lost an answer may ask for it again. */
const GRACE = 10_000;

const INSERT_FAMILY = `
  INSERT INTO refresh_family
    (id, client_id, agent_id, organization_id, scope, current_hash, previous_hash, begun_at, rotated_at, ended_at, expires_at)
  VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, NULL, ?)`;

const SELECT = `
  SELECT family.*, EXISTS (
    SELECT 1 FROM revocation
    WHERE (kind = 'family' AND value = family.id)
      OR (kind = 'subject' AND value = family.agent_id AND issued_before >= family.begun_at)
      OR (kind = 'client' AND value = family.client_id AND issued_before >= family.begun_at)
  ) AS revoked
  FROM refresh_token token
  JOIN refresh_family family ON family.id = token.family_id
  WHERE token.hash = ?`;

/** Moves the chain on from the very state that was read, or was reached by this attempt: of parallel ones one matches. */
const ROTATE = `
  UPDATE refresh_family SET current_hash = ?, previous_hash = ?, rotated_at = ?, expires_at = ?
  WHERE id = ? AND current_hash IN (?, ?) AND ended_at IS NULL AND expires_at > ?`;

const END = 'UPDATE refresh_family SET ended_at = COALESCE(ended_at, ?) WHERE id = ?';

/** Refresh tokens: rotated on each use, with detection of reuse (RFC 9700 section 4.14; contract, section 8). */
@Injectable()
export class RefreshTokens {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
  ) {}

  /** Begins a chain that an agent granted at a time (milliseconds since 1970); returns its first refresh token. */
  async begin(family: string, content: RefreshContent, grantedAt: number): Promise<string> {
    const { clientId, agentId, organizationId, scope } = content;
    const { token, hash } = await this.remember(family);
    const now = new Date(this.clock.now());
    const row = [family, clientId, agentId, organizationId, scope, hash, new Date(grantedAt), now, this.expiry()];
    await this.database.change(INSERT_FAMILY, row);
    return token;
  }

  /**
   * Gives the next token of a chain for its current one. Asked again within 10 s while nobody has used the answer, it
   * replaces that answer; any other use of a token that is no longer current ends the chain with all its tokens.
   *
   * @param decide what of the grant is given this time; where it refuses, the token stays as good as it was
   * @throws OAuthError `invalid_grant`
   */
  async rotate(
    refreshToken: string,
    clientId: string,
    arrivedAt: number,
    decide: (granted: RefreshContent) => Promise<RefreshContent>,
  ): Promise<Refreshed> {
    const used = sha256(refreshToken);
    const [row] = await this.database.select<FamilyRow>(SELECT, [used]);
    if (!row) throw OAuthError.invalidGrant('refresh token: unknown');
    if (row.client_id !== clientId) throw OAuthError.invalidGrant('refresh token: of another client');
    if (row.ended_at !== null || row.revoked !== 0) throw OAuthError.invalidGrant('refresh token: its chain has ended');
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('refresh token: expired');
    const isRetry = this.isRetry(row, used, arrivedAt);
    if (row.current_hash !== used && !isRetry) await this.refuseReuse(row, arrivedAt);
    const { agent_id: agentId, organization_id: organizationId, scope } = row;
    const given = await decide({ clientId, agentId, organizationId, scope });
    const next = await this.remember(row.id);
    const now = new Date(this.clock.now());
    const rotated = isRetry ? new Date(timeOf(row.rotated_at)) : now;
    const state = [next.hash, used, rotated, this.expiry(), row.id, row.current_hash, next.hash, now];
    if ((await this.database.changeAgain(ROTATE, state)) !== 1) {
      throw OAuthError.invalidGrant('refresh token: another attempt was faster');
    }
    await this.clock.reach(now.getTime()); // a retry or reuse comes after the answer, and so after rotated_at
    this.tell('redeemed', 'success', row);
    return { ...given, family: row.id, refreshToken: next.token };
  }

  /** The chain that a refresh token belongs to, if it is this client's; `clientId` left out: anybody's. */
  async familyOf(refreshToken: string, clientId?: string): Promise<string | undefined> {
    const [row] = await this.database.select<FamilyRow>(SELECT, [sha256(refreshToken)]);
    return row && (clientId === undefined || row.client_id === clientId) ? row.id : undefined;
  }

  /** Ends a chain with all its tokens. */
  async end(family: string): Promise<void> {
    await this.denylist.revokeFamily(family, this.configuration.longestTokenLife);
    await this.database.change(END, [new Date(this.clock.now()), family]);
  }

  private isRetry({ previous_hash, rotated_at }: FamilyRow, used: string, arrivedAt: number): boolean {
    const rotated = timeOf(rotated_at);
    return previous_hash === used && rotated < arrivedAt && arrivedAt <= rotated + GRACE;
  }

  /** Two hold the chain: its owner and a thief. Which is which nobody can tell. */
  private async refuseReuse(row: FamilyRow, arrivedAt: number): Promise<never> {
    // what was on its way when another attempt moved the chain on lost a race, and proves no theft
    if (arrivedAt <= timeOf(row.rotated_at)) throw OAuthError.invalidGrant('refresh token: another attempt was faster');
    await this.end(row.id);
    this.tell('replayed', 'failure', row);
    throw OAuthError.invalidGrant('refresh token: used again');
  }

  private tell(what: 'redeemed' | 'replayed', outcome: 'success' | 'failure', row: FamilyRow): void {
    this.audit.record({
      event: `refresh_token.${what}`,
      outcome,
      actor: { kind: 'client', id: row.client_id },
      subject: { kind: 'agent', id: row.agent_id },
      organizationId: row.organization_id,
      clientId: row.client_id,
      details: { family: row.id },
    });
  }

  private async remember(family: string): Promise<{ token: string; hash: string }> {
    const token = `${this.configuration.TOKEN_REGION}:${randomSecret('base64url')}`;
    const hash = sha256(token);
    const insert = 'INSERT INTO refresh_token (hash, family_id, expires_at) VALUES (?, ?, ?)';
    await this.database.change(insert, [hash, family, this.expiry()]);
    return { token, hash };
  }

  private expiry(): Date {
    return new Date(this.clock.now() + this.configuration.REFRESH_TOKEN_TTL * 1000);
  }
}
