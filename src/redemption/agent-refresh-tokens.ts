import { Injectable } from '@nestjs/common';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { type NotNull, writeStatement } from '../platform/database/statement.js';
import { AgentSessionEndings } from '../session/agent/agent-session-endings.js';
import { AgentSessions, type StoredAgentSession } from '../session/agent/agent-sessions.js';
import { AuthorizationCodes, type AuthorizationRow } from './authorization-codes.js';
import type { FoundCode } from './redeemable-codes.js';
import { RefreshTokens, type Rotation } from './refresh-tokens.js';

/** A session of an agent with a refresh token. */
export type AgentRefreshRow = StoredAgentSession & NotNull<Pick<StoredAgentSession, 'scope' | 'current_hash'>>;

/** One of several parallel uses of the current token matches the row. An ending has deleted it. */
const ROTATE = writeStatement<
  [nextHash: string, usedHash: string, nonce: string, expiresAt: Date, id: string, usedHash: string]
>(`UPDATE agent_session SET current_hash = ?, previous_hash = ?, successor_nonce = ?, expires_at = ?
    WHERE id = ? AND current_hash = ?`);

/** Refresh tokens of agents (protocol §6.8). */
@Injectable()
export class AgentRefreshTokens extends RefreshTokens<AgentRefreshRow> {
  constructor(
    clock: Clock,
    configuration: Configuration,
    private readonly database: Database,
    private readonly sessions: AgentSessions,
    private readonly endings: AgentSessionEndings,
    private readonly codes: AuthorizationCodes,
    audit: Audit,
  ) {
    super(clock, configuration, audit);
  }

  /**
   * Redeems an authorization code.
   *
   * @returns the first refresh token
   * @throws OAuthError `invalid_grant` if a parallel request has redeemed the code, or it has ended
   */
  async begin(code: FoundCode<AuthorizationRow>): Promise<string> {
    const { refreshToken, columns } = this.first();
    await this.codes.redeem(code, columns);
    return refreshToken;
  }

  protected override async find(refreshIdHash: string): Promise<AgentRefreshRow | undefined> {
    return (await this.sessions.findByRefreshToken(refreshIdHash)) as AgentRefreshRow | undefined;
  }

  protected override async rotate(
    { id }: AgentRefreshRow,
    { nextHash, usedHash, nonce, expiresAt }: Rotation,
  ): Promise<boolean> {
    const values = [nextHash, usedHash, nonce, expiresAt, id, usedHash] as const;
    return (await this.database.execute(ROTATE, [...values])) > 0;
  }

  protected override end({ id }: AgentRefreshRow): Promise<unknown> {
    return this.endings.end(id, 'refresh_token_revoked');
  }

  protected override subjectOf({ agent_id }: AgentRefreshRow): AuditParty {
    return party('agent', agent_id);
  }
}
