import { Injectable } from '@nestjs/common';
import type { InactiveReason, StoredToken } from '../../access-token/inactive-reason.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { isPkceSatisfied } from '../../oauth/pkce.js';
import { Audit, party } from '../../platform/audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { Database } from '../../platform/database/database.js';
import { timeOf } from '../../platform/database/sql-dialect.js';
import { type NotNull, writeStatement } from '../../platform/database/statement.js';
import { randomSecret, sha256 } from '../../platform/secret.js';
import { uuidv7 } from '../../platform/uuid.js';
import { CallerNetworks, isDuplicateUse } from '../caller-networks.js';
import { auditRedeemable } from '../redemption-audit.js';
import type { FirstRefreshToken } from '../refresh-tokens.js';
import { AgentSessions, type StoredAgentSession } from './agent-sessions.js';

type CodeRow = StoredAgentSession & NotNull<Pick<StoredAgentSession, 'scope' | 'redirect_uri'>>;

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

/** What the token request proves besides the code. */
export interface CodeProof {
  clientId: string;
  redirectUri: string;
  codeVerifier?: string | undefined;
}

/** An authorization code that its client may redeem now. */
export interface RedeemableAuthorization {
  /** Of the session that the redemption makes of the code. */
  id: string;
  agentId: string;
  organizationId: string;
  clientId: string;
  /** The granted scopes, separated by spaces. */
  scope: string;
  codeHash: string;
  /** An HMAC of the network of this request. */
  network: string | null;
}

/** Authorization codes, which can be redeemed once (protocol §3.6). A redeemed code is the session that it gave. */
@Injectable()
export class AuthorizationCodes {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly configuration: Configuration,
    private readonly sessions: AgentSessions,
    private readonly networks: CallerNetworks,
    private readonly audit: Audit,
  ) {}

  /** The database stores only the hash of the code. @throws AgentChangedError */
  async issue({ generation, codeChallenge, ...granted }: GrantedCode): Promise<string> {
    const code = `${this.configuration.TOKEN_REGION}:${randomSecret('base64url')}`;
    const now = this.clock.now();
    const expiresAt = new Date(now + this.configuration.AUTHORIZATION_CODE_TTL * 1000);
    const session = { id: uuidv7(now), kind: 'code', codeHash: sha256(code), expiresAt } as const;
    await this.sessions.begin({ ...session, ...granted, codeChallenge: codeChallenge ?? null }, generation);
    this.auditCode('issued', granted);
    return code;
  }

  /**
   * Finds the code. A wrong client, redirect URI or verifier leaves it usable and ends nothing. A second use that is a
   * replay ends the session that the first use gave (protocol §3.6, §3.7).
   *
   * @throws OAuthError `invalid_grant`
   */
  async find(code: string, proof: CodeProof): Promise<RedeemableAuthorization> {
    const codeHash = sha256(code);
    const row = await this.rowOf(codeHash);
    assertProofMatches(row, proof);
    const network = this.networks.current(codeHash);
    if (row.kind !== 'code') return this.rejectReuse(row, network);
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('code: expired');
    const { id, agent_id: agentId, organization_id: organizationId, client_id: clientId, scope } = row;
    return { id, agentId, organizationId, clientId, scope, codeHash, network };
  }

  /** @throws OAuthError `invalid_grant` if a parallel request has redeemed the code, or it has ended */
  async redeem(code: RedeemableAuthorization, refreshToken: FirstRefreshToken['columns']): Promise<void> {
    const { id, codeHash, network } = code;
    const { refreshIdHash, currentHash, expiresAt } = refreshToken;
    const values = [network, refreshIdHash, currentHash, expiresAt] as const;
    if ((await this.database.execute(REDEEM, [...values, id, new Date(this.clock.now())])) === 0) {
      const row = await this.rowOf(codeHash);
      if (row && row.kind !== 'code') return this.rejectReuse(row, network);
      throw OAuthError.invalidGrant('code: its agent has changed');
    }
    this.auditCode('redeemed', code);
  }

  /** Describes a code for the operator; `undefined` if it is not stored. */
  async describe(code: string): Promise<StoredToken | undefined> {
    const row = await this.rowOf(sha256(code));
    if (!row) return undefined;
    const { id, client_id: clientId, agent_id: subject, organization_id: organizationId, expires_at } = row;
    const inactiveReason = this.inactiveReasonOf(row);
    return {
      kind: 'authorization code',
      clientId,
      subject,
      organizationId,
      expiresAt: timeOf(expires_at),
      session: id,
      ...(inactiveReason && { inactiveReason }),
    };
  }

  private async rejectReuse(row: CodeRow, network: string | null): Promise<never> {
    if (isDuplicateUse(row, network)) throw OAuthError.invalidGrant('code: duplicate use');
    await this.sessions.end(row.id, 'revoked');
    const { id, agent_id: agentId, client_id: clientId, organization_id: organizationId } = row;
    this.auditCode('replayed', { id, agentId, clientId, organizationId });
    throw OAuthError.invalidGrant('code: replayed');
  }

  private inactiveReasonOf({ kind, expires_at }: CodeRow): InactiveReason | undefined {
    if (kind !== 'code') return 'already_used';
    return timeOf(expires_at) <= this.clock.now() ? 'expired' : undefined;
  }

  private async rowOf(codeHash: string): Promise<CodeRow | undefined> {
    return (await this.sessions.findByCode(codeHash)) as CodeRow | undefined;
  }

  private auditCode(
    action: 'issued' | 'redeemed' | 'replayed',
    { id, agentId, clientId, organizationId }: Pick<RedeemableAuthorization, CodeParty> & { id?: string },
  ): void {
    const parties = { subject: party('agent', agentId), clientId, organizationId };
    auditRedeemable(this.audit, 'authorization_code', action, { ...parties, ...(id !== undefined && { session: id }) });
  }
}

type CodeParty = 'agentId' | 'clientId' | 'organizationId';

/** @throws OAuthError `invalid_grant` if the code is unknown or the proof does not match the code (protocol §3.6) */
function assertProofMatches(row: CodeRow | undefined, proof: CodeProof): asserts row is CodeRow {
  const violation = row ? violationOf(row, proof) : 'unknown';
  if (violation !== undefined) throw OAuthError.invalidGrant(`code: ${violation}`);
}

function violationOf(row: CodeRow, proof: CodeProof): string | undefined {
  if (row.client_id !== proof.clientId) return 'of another client';
  // The redirect URI must be exactly the one of the authorization request (RFC 6749 §4.1.3).
  if (row.redirect_uri !== proof.redirectUri) return 'sent to another redirect_uri';
  if (!isPkceSatisfied(row.code_challenge, proof.codeVerifier)) return 'the verifier does not fit';
  return undefined;
}
