import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-time.js';
import { callerNetwork, isSameNetwork } from '../platform/request-context/caller-network.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import {
  END_FAMILY,
  type FamilyRow,
  FIND_FAMILY,
  INSERT_FAMILY,
  INSERT_TOKEN,
  MARK_REPLACED,
  RETRY_ROTATION,
  ROTATE,
} from './refresh-statements.js';

/** What a refresh family stands for. */
export interface RefreshContent {
  clientId: string;
  agentId: string;
  organizationId: string;
  scope: string;
  /** The generation of the agent when it granted access. */
  generation: number;
}

export interface Refreshed extends RefreshContent {
  /** The family's id; the `jti` of its access tokens begins with it. */
  family: string;
  refreshToken: string;
}

/** The client that presents a refresh token. */
export interface RefreshingClient {
  clientId: string;
  /** Whether it has proven that it knows its secret. */
  isAuthenticated: boolean;
}

/** Milliseconds after a rotation in which the client may ask again, because the response was lost. */
const RETRY_WINDOW_MS = 120_000;

/** Refresh tokens: rotated on each use, with detection of reuse (RFC 9700 §4.14). */
@Injectable()
export class RefreshTokens {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
  ) {}

  /** Begins a family that an agent granted at a time (milliseconds since 1970); returns its first refresh token. */
  async begin(family: string, content: RefreshContent, grantedAt: number): Promise<string> {
    const { clientId, agentId, organizationId, scope, generation } = content;
    const { token, hash } = await this.newToken(family);
    const now = new Date(this.clock.now());
    await this.database.insert(INSERT_FAMILY, [
      family,
      clientId,
      agentId,
      organizationId,
      scope,
      hash,
      new Date(grantedAt),
      now,
      this.expiry(),
      generation,
    ]);
    return token;
  }

  /**
   * Gives the next token of a family for its current one. A repeated use is a retry while its successor is unused, for
   * two minutes: it replaces the successor. Any other reuse ends the family with all its tokens.
   *
   * @param decide what of the grant is given this time; if it throws, the token stays usable
   * @throws OAuthError `invalid_grant`
   */
  async rotate(
    refreshToken: string,
    client: RefreshingClient,
    decide: (granted: RefreshContent) => Promise<RefreshContent>,
  ): Promise<Refreshed> {
    const used = sha256(refreshToken);
    const row = await this.usable(used, client.clientId);
    const network = callerNetwork(row.id);
    const isRetry = row.previous_hash === used && isRetryAllowed(row, client, network);
    if (row.current_hash !== used && !isRetry) return this.rejectReuse(row);
    const { agent_id: agentId, organization_id: organizationId, scope } = row;
    const generation = row.generation ?? 0;
    const given = await decide({ clientId: client.clientId, agentId, organizationId, scope, generation });
    const next = await this.newToken(row.id);
    // before the UPDATE: a mark without it is ignored, and an UPDATE without the mark would let the successor end the family
    if (isRetry) await this.database.executeIdempotent(MARK_REPLACED, [row.current_hash]);
    const state: [string, string, string, Date] = [row.id, row.current_hash, next.hash, new Date(this.clock.now())];
    const isRotated = isRetry
      ? await this.database.executeIdempotent(RETRY_ROTATION, [next.hash, this.expiry(), ...state])
      : await this.database.executeIdempotent(ROTATE, [next.hash, used, network, this.expiry(), ...state]);
    // a parallel use was faster; which of the two is the client's next token is not known here
    if (isRotated !== 1) throw OAuthError.invalidGrant('refresh token: a parallel use was faster');
    this.record('redeemed', 'success', row);
    return { ...given, family: row.id, refreshToken: next.token };
  }

  /** The family that a refresh token belongs to, if it is this client's; `clientId` left out: any client's. */
  async familyOf(refreshToken: string, clientId?: string): Promise<string | undefined> {
    const [row] = await this.database.select(FIND_FAMILY, [sha256(refreshToken)]);
    return row && (clientId === undefined || row.client_id === clientId) ? row.id : undefined;
  }

  /** Ends a family with all its tokens and their descendants. */
  async end(family: string): Promise<void> {
    await this.denylist.revokeFamily(family);
    await this.database.executeIdempotent(END_FAMILY, [new Date(this.clock.now()), family]);
  }

  private async usable(used: string, clientId: string): Promise<FamilyRow> {
    const [row] = await this.database.select(FIND_FAMILY, [used]);
    if (!row) throw OAuthError.invalidGrant('refresh token: unknown');
    if (row.client_id !== clientId) throw OAuthError.invalidGrant('refresh token: of another client');
    if (row.ended_at !== null) throw OAuthError.invalidGrant('refresh token: its family has ended');
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('refresh token: expired');
    if (row.replaced_at !== null && used !== row.current_hash && used !== row.previous_hash)
      throw OAuthError.invalidGrant('refresh token: replaced by a retry');
    const { id: jti, agent_id: sub, client_id, begun_at, generation } = row;
    const iat = timeOf(begun_at) / 1000;
    if (await this.denylist.hasEnded({ jti, sub, client_id, iat, aud: 'agent-api', gen: generation ?? 0 }))
      throw OAuthError.invalidGrant('refresh token: its family has ended');
    return row;
  }

  /** The client and a thief both hold the family; nothing tells which of them sends this request. */
  private async rejectReuse(row: FamilyRow): Promise<never> {
    await this.end(row.id);
    this.record('replayed', 'failure', row);
    throw OAuthError.invalidGrant('refresh token: used again');
  }

  private record(what: 'redeemed' | 'replayed', outcome: 'success' | 'failure', row: FamilyRow): void {
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

  private async newToken(family: string): Promise<{ token: string; hash: string }> {
    const token = `${this.configuration.TOKEN_REGION}:${randomSecret('base64url')}`;
    const hash = sha256(token);
    await this.database.insert(INSERT_TOKEN, [hash, family, this.expiry()]);
    return { token, hash };
  }

  private expiry(): Date {
    return new Date(this.clock.now() + this.configuration.REFRESH_TOKEN_TTL * 1000);
  }
}

/** A client without a secret can be anyone that has the token: its retry must come from the network of the first use. */
function isRetryAllowed(row: FamilyRow, { isAuthenticated }: RefreshingClient, network: string | null): boolean {
  return row.rotated_for <= RETRY_WINDOW_MS && (isAuthenticated || isSameNetwork(row.rotated_network, network));
}
