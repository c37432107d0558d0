import { randomUUID } from 'node:crypto';
import { Injectable, ServiceUnavailableException } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { InactiveReason, StoredToken } from '../access-token/inactive-reason.js';
import type { RevocableClaims } from '../access-token/token-claims.js';
import { Audit, party } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { isPkceSatisfied } from '../oauth/pkce.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { traced } from '../platform/request-context/request-context.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { CallerNetworks, isSameNetwork } from '../session/caller-networks.js';
import { Endings } from '../session/endings.js';
import { TokenValidity } from '../session/token-validity.js';
import {
  type CodeRow,
  FIND_CODE,
  INSERT_CODE,
  REDEEM_CODE,
  type RedeemableCode,
  redeemableCode,
} from './stored-codes.js';

/** A second use from the same network within this time is a duplicate, not a replay (protocol §3.7). */
const DUPLICATE_WINDOW_MS = 2_000;

export interface CodeContent {
  clientId: string;
  agentId: string;
  organizationId: string;
  scope: string;
  redirectUri: string;
  codeChallenge?: string | undefined;
  /** The generation of the agent. */
  generation: number;
}

export interface CodeProof {
  clientId: string;
  redirectUri: string;
  codeVerifier?: string | undefined;
}

export interface RedeemedCode extends RedeemableCode {
  /** The id of the refresh family that the code gives, by which a replay of the code ends the family. */
  attempt: string;
}

/** What a redemption does. If a step throws, the code stays usable. */
export interface RedemptionSteps {
  prepare(code: RedeemableCode): Promise<void>;
  /** Stores what the redemption gives, in its transaction. It may run again after a rollback. */
  store(manager: EntityManager, code: RedeemedCode): Promise<void>;
}

/** Authorization codes of agents, which can be redeemed once (decision 0005). */
@Injectable()
export class OneTimeCodes {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly endings: Endings,
    private readonly validity: TokenValidity,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
    private readonly networks: CallerNetworks,
  ) {}

  /** The database stores only the hash of the code. */
  async issue(content: CodeContent, ttlSeconds: number): Promise<string> {
    const code = `${this.configuration.TOKEN_REGION}:${randomSecret('base64url')}`;
    const { clientId, agentId, organizationId, scope, redirectUri, codeChallenge = null, generation } = content;
    const now = this.clock.now();
    const times = [new Date(now), new Date(now + ttlSeconds * 1000)] as const;
    const about = [clientId, agentId, organizationId, scope, redirectUri, codeChallenge, generation] as const;
    await this.database.insertIdempotent(INSERT_CODE, [sha256(code), ...about, ...times]);
    this.record({ client_id: clientId, agent_id: agentId, organization_id: organizationId }, 'issued');
    return code;
  }

  /**
   * A wrong client, redirect URI or verifier leaves the code usable and ends nothing. A second use that is a replay
   * also ends the tokens of the first use (protocol §3.6, §3.7). @throws OAuthError `invalid_grant`
   */
  redeem(code: string, proof: CodeProof, steps: RedemptionSteps): Promise<RedeemedCode> {
    return traced('redemption', { 'cas.code_kind': 'authorization' }, async () => {
      const hash = sha256(code);
      const row = await this.find(hash);
      assertProofMatches(row, proof);
      const network = this.networks.current(hash);
      if (row.consumed_for !== null) return this.rejectReuse(row, network);
      if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('code: expired');
      if (await this.validity.hasEnded(claimsOf(row)))
        throw OAuthError.invalidGrant('code: its agent or client has ended');
      const redeemed: RedeemedCode = { ...redeemableCode(row), attempt: randomUUID() };
      await steps.prepare(redeemed);
      if (!(await this.store(hash, redeemed, network, steps)))
        return this.rejectReuse((await this.find(hash)) ?? row, network);
      this.record(row, 'redeemed', redeemed.attempt);
      return redeemed;
    });
  }

  async describe(code: string): Promise<StoredToken | undefined> {
    const row = await this.find(sha256(code));
    if (!row) return undefined;
    const { client_id: clientId, agent_id: subject, organization_id: organizationId, consumed_by: session } = row;
    const inactiveReason = await this.inactiveReasonOf(row);
    return {
      kind: 'authorization code',
      ...{ clientId, subject, organizationId, expiresAt: timeOf(row.expires_at) },
      ...(session && { session }),
      ...(inactiveReason && { inactiveReason }),
    };
  }

  /** The UPDATE decides. It is part of the transaction of the further writes, so that all are stored or none. */
  private async store(
    hash: string,
    code: RedeemedCode,
    network: string | null,
    steps: RedemptionSteps,
  ): Promise<boolean> {
    const { attempt } = code;
    const redemption = [attempt, network, hash, new Date(this.clock.now()), attempt] as const;
    const redeemed = this.database.transaction(async (manager) => {
      if ((await writeIn(manager, REDEEM_CODE, [...redemption])) !== 1) return false;
      await steps.store(manager, code);
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
    const { consumed_by: family, consumed_for, consumed_network } = row;
    if (family === null || consumed_for === null) throw OAuthError.invalidGrant('code: expired');
    const isDuplicate = consumed_for >= 0 && consumed_for <= DUPLICATE_WINDOW_MS;
    if (isDuplicate && isSameNetwork(consumed_network, network)) throw OAuthError.invalidGrant('code: duplicate use');
    await this.endings.endFamily(family);
    this.record(row, 'replayed', family);
    throw OAuthError.invalidGrant('code: replayed');
  }

  private async inactiveReasonOf(row: CodeRow): Promise<InactiveReason | undefined> {
    if (row.consumed_for !== null) return 'already_used';
    if (timeOf(row.expires_at) <= this.clock.now()) return 'expired';
    return this.validity.endedReason(claimsOf(row));
  }

  private async find(hash: string): Promise<CodeRow | undefined> {
    const [row] = await this.database.select(FIND_CODE, [hash]);
    if (!row || (row.consumed_for ?? 0) >= 0) return row;
    // The SELECT began before the redemption, or the clock of the database was set back. Another SELECT decides.
    return (await this.database.select(FIND_CODE, [hash]))[0];
  }

  /** @param family that the code gave. Audit events do not contain the hash of the code. */
  private record(
    { client_id, agent_id, organization_id }: Pick<CodeRow, 'client_id' | 'agent_id' | 'organization_id'>,
    action: 'issued' | 'redeemed' | 'replayed',
    family?: string,
  ): void {
    this.audit.record({
      event: `authorization_code.${action}`,
      outcome: action === 'replayed' ? 'failure' : 'success',
      actor: party('client', client_id),
      subject: party('agent', agent_id),
      organizationId: organization_id,
      clientId: client_id,
      ...(family && { details: { jti: family } }),
    });
  }
}

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

/** The code as claims whose ending can be checked, because a code ends with its agent and client. */
function claimsOf({ agent_id: sub, client_id, issued_at, generation: gen }: CodeRow): RevocableClaims {
  return { jti: '', sub, client_id, iat: timeOf(issued_at) / 1000, aud: 'agent-api', gen };
}
