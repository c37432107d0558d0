import { Injectable } from '@nestjs/common';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { type NotNull, writeStatement } from '../platform/database/statement.js';
import { AgentSessionEndings } from '../session/agent/agent-session-endings.js';
import { AgentSessions, type StoredAgentSession } from '../session/agent/agent-sessions.js';
import { CallerNetworks } from './caller-networks.js';
import { type FoundCode, RedeemableCodes } from './redeemable-codes.js';
import type { FirstRefreshToken } from './refresh-tokens.js';

/** A session of an agent with a code, redeemed or not. */
export type AuthorizationRow = StoredAgentSession & NotNull<Pick<StoredAgentSession, 'scope' | 'redirect_uri'>>;

/** The first of parallel redemptions changes the row. A change of the agent has deleted it. */
const REDEEM = writeStatement<
  [network: string | null, refreshIdHash: string, currentHash: string, expiresAt: Date, id: string, now: Date]
>(
  ({ now }) => `UPDATE agent_session SET kind = 'refresh', redeemed_at = ${now}, redeemed_network = ?,
      refresh_id_hash = ?, current_hash = ?, expires_at = ?
    WHERE id = ? AND kind = 'code' AND expires_at > ?`,
);

/** The access that an agent has granted to an application, which gets a code for it. */
interface GrantedCode {
  clientId: string;
  agentId: string;
  organizationId: string;
  /** Scopes separated by spaces. */
  scope: string;
  redirectUri: string;
  codeChallenge?: string | undefined;
  /** The generation of the agent. */
  generation: number;
}

/** Authorization codes of agents (protocol §6.8). */
@Injectable()
export class AuthorizationCodes extends RedeemableCodes<AuthorizationRow> {
  constructor(
    clock: Clock,
    configuration: Configuration,
    networks: CallerNetworks,
    audit: Audit,
    private readonly database: Database,
    private readonly sessions: AgentSessions,
    private readonly endings: AgentSessionEndings,
  ) {
    super('authorization_code', clock, configuration, networks, audit);
  }

  /** @throws AgentChangedError */
  async issue({ generation, codeChallenge, ...granted }: GrantedCode): Promise<string> {
    const { code, columns } = this.newCode(this.configuration.AUTHORIZATION_CODE_TTL);
    await this.sessions.begin({ ...columns, ...granted, codeChallenge: codeChallenge ?? null }, generation);
    const { agentId, clientId, organizationId } = granted;
    this.auditIssue({ subject: party('agent', agentId), clientId, organizationId });
    return code;
  }

  /** @throws OAuthError `invalid_grant` if a parallel request has redeemed the code, or it has ended */
  async redeem(code: FoundCode<AuthorizationRow>, refreshToken: FirstRefreshToken['columns']): Promise<void> {
    const { refreshIdHash, currentHash, expiresAt } = refreshToken;
    const values = [code.network, refreshIdHash, currentHash, expiresAt] as const;
    const redeemed = await this.database.execute(REDEEM, [...values, code.row.id, new Date(this.clock.now())]);
    if (redeemed === 0) await this.rejectLost(code);
    this.auditUse('redeemed', code.row);
  }

  protected override async rowOf(codeHash: string): Promise<AuthorizationRow | undefined> {
    return (await this.sessions.findByCode(codeHash)) as AuthorizationRow | undefined;
  }

  protected override subjectOf({ agent_id }: AuthorizationRow): AuditParty {
    return party('agent', agent_id);
  }

  protected override end({ id }: AuthorizationRow): Promise<unknown> {
    return this.endings.end(id, 'revoked');
  }
}
