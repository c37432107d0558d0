import { Injectable } from '@nestjs/common';
import type { StoredToken } from '../../access-token/inactive-reason.js';
import { Audit, party } from '../../platform/audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { Database } from '../../platform/database/database.js';
import { type EntityRow, type NotNull, selectStatement, writeStatement } from '../../platform/database/statement.js';
import { RefreshTokens, type Rotation } from '../refresh-tokens.js';
import type { AgentSession } from './agent-session.entity.js';
import { AgentSessions } from './agent-sessions.js';
import { AuthorizationCodes, type RedeemableAuthorization } from './authorization-codes.js';

const COLUMNS = [
  'id',
  'agent_id',
  'organization_id',
  'client_id',
  'scope',
  'epoch',
  'current_hash',
  'expires_at',
] as const;
const NULLABLE_COLUMNS = ['previous_hash', 'successor_nonce'] as const;

/** A session of an agent with a refresh token. */
export type AgentRefreshRow = NotNull<EntityRow<AgentSession, (typeof COLUMNS)[number]>> &
  EntityRow<AgentSession, (typeof NULLABLE_COLUMNS)[number]>;

const FIND = selectStatement<[familyHash: string], AgentRefreshRow>({
  columns: [...COLUMNS, ...NULLABLE_COLUMNS],
  from: 'agent_session WHERE family_hash = ?',
  batch: true,
});

/** One of several parallel uses of the current token matches the row. An ending has deleted it. */
const ROTATE = writeStatement<
  [nextHash: string, usedHash: string, nonce: string, expiresAt: Date, id: string, usedHash: string]
>(`UPDATE agent_session SET current_hash = ?, previous_hash = ?, successor_nonce = ?, expires_at = ?
    WHERE id = ? AND current_hash = ?`);

/** The parties of a refresh token in the audit. */
type Parties = Pick<AgentRefreshRow, 'id' | 'agent_id' | 'client_id' | 'organization_id'>;

/** Refresh tokens of agents (protocol §6.8). */
@Injectable()
export class AgentRefreshTokens extends RefreshTokens<AgentRefreshRow> {
  constructor(
    clock: Clock,
    configuration: Configuration,
    private readonly database: Database,
    private readonly sessions: AgentSessions,
    private readonly codes: AuthorizationCodes,
    private readonly audit: Audit,
  ) {
    super(clock, configuration);
  }

  /**
   * Redeems an authorization code.
   *
   * @returns the first refresh token
   * @throws OAuthError `invalid_grant` if a parallel request has redeemed the code, or it has ended
   */
  async begin(code: RedeemableAuthorization): Promise<string> {
    const { refreshToken, columns } = this.first();
    await this.codes.redeem(code, columns);
    return refreshToken;
  }

  protected override async find(familyHash: string): Promise<AgentRefreshRow | undefined> {
    return (await this.database.select(FIND, [familyHash]))[0];
  }

  /** A session that has ended has no row. */
  protected override endedReason(): undefined {
    return undefined;
  }

  protected override async rotate(
    { id }: AgentRefreshRow,
    { nextHash, usedHash, nonce, expiresAt }: Rotation,
  ): Promise<boolean> {
    const values = [nextHash, usedHash, nonce, expiresAt, id, usedHash] as const;
    return (await this.database.execute(ROTATE, [...values])) > 0;
  }

  /** Nothing counts the days of an agent's session. */
  protected override async noteRetry(): Promise<boolean> {
    return true;
  }

  protected override end({ id }: AgentRefreshRow): Promise<void> {
    return this.sessions.end(id, 'refresh_token_revoked');
  }

  protected override ownerOf(row: AgentRefreshRow): Pick<StoredToken, 'subject' | 'organizationId'> {
    return { subject: row.agent_id, organizationId: row.organization_id };
  }

  protected override record(action: 'redeemed' | 'replayed', row: Parties): void {
    const { id, agent_id, client_id: clientId, organization_id: organizationId } = row;
    this.audit.record({
      event: `refresh_token.${action}`,
      outcome: action === 'replayed' ? 'failure' : 'success',
      actor: party('client', clientId),
      subject: party('agent', agent_id),
      organizationId,
      clientId,
      details: { session: id },
    });
  }
}
