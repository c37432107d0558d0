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
import type { RefreshContent, Refreshed, RefreshingClient } from './refresh-content.js';
import {
  END_FAMILY,
  type FamilyRow,
  FIND_FAMILY,
  INSERT_FAMILY,
  INSERT_TOKEN,
  RETRY_ROTATION,
  ROTATE,
  SET_REPLACED,
} from './refresh-statements.js';

/** A client that lost the response may retry within this time after a rotation (protocol §3.9). */
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

  /**
   * Creates a family and returns its first refresh token.
   *
   * @param grantedAt when the agent granted access, in milliseconds since 1970
   */
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
   * Replaces the current token of a family by its successor (protocol §3.9). A repeated use is a retry for 2 minutes
   * while the successor is unused: the response replaces the successor. Any other reuse ends the family with all its
   * tokens.
   *
   * @param decide returns the access that this response gives; if it throws, the token stays usable
   * @throws OAuthError `invalid_grant`
   */
  async rotate(
    refreshToken: string,
    client: RefreshingClient,
    decide: (granted: RefreshContent) => Promise<RefreshContent>,
  ): Promise<Refreshed> {
    const used = sha256(refreshToken);
    const row = await this.findUsable(used, client.clientId);
    const network = callerNetwork(row.id);
    const isRetry = row.previous_hash === used && isRetryAllowed(row, client, network);
    if (row.current_hash !== used && !isRetry) return this.rejectReuse(row);
    const { agent_id: agentId, organization_id: organizationId, scope } = row;
    const generation = row.generation ?? 0;
    const content = await decide({ clientId: client.clientId, agentId, organizationId, scope, generation });
    const next = await this.newToken(row.id);
    // This comes before the UPDATE. An UPDATE without it would let a use of the successor end the family.
    // Without the UPDATE it has no effect.
    if (isRetry) await this.database.executeIdempotent(SET_REPLACED, [row.current_hash]);
    const state: [string, string, string, Date] = [row.id, row.current_hash, next.hash, new Date(this.clock.now())];
    const isRotated = isRetry
      ? await this.database.executeIdempotent(RETRY_ROTATION, [next.hash, this.expiry(), ...state])
      : await this.database.executeIdempotent(ROTATE, [next.hash, used, network, this.expiry(), ...state]);
    // A parallel use was faster. The service cannot know which of the two responses the client uses.
    if (isRotated !== 1) throw OAuthError.invalidGrant('refresh token: redeemed by a parallel request');
    this.record('redeemed', 'success', row);
    return { ...content, family: row.id, refreshToken: next.token };
  }

  /** Finds the family of a refresh token. With `clientId` only a family of this client is found. */
  async familyOf(refreshToken: string, clientId?: string): Promise<string | undefined> {
    const [row] = await this.database.select(FIND_FAMILY, [sha256(refreshToken)]);
    return row && (clientId === undefined || row.client_id === clientId) ? row.id : undefined;
  }

  /** Ends a family with all its tokens and their descendants. */
  async end(family: string): Promise<void> {
    await this.denylist.revokeFamily(family);
    await this.database.executeIdempotent(END_FAMILY, [new Date(this.clock.now()), family]);
  }

  private async findUsable(used: string, clientId: string): Promise<FamilyRow> {
    const [row] = await this.database.select(FIND_FAMILY, [used]);
    if (!row) throw OAuthError.invalidGrant('refresh token: unknown');
    if (row.client_id !== clientId) throw OAuthError.invalidGrant('refresh token: belongs to another client');
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

  /** Ends the family, because the service cannot distinguish the client from a thief that has a token of the family. */
  private async rejectReuse(row: FamilyRow): Promise<never> {
    await this.end(row.id);
    this.record('replayed', 'failure', row);
    throw OAuthError.invalidGrant('refresh token: used again');
  }

  private record(action: 'redeemed' | 'replayed', outcome: 'success' | 'failure', row: FamilyRow): void {
    this.audit.record({
      event: `refresh_token.${action}`,
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

/**
 * A client without a secret proves nothing but the token, so its retry must come from the network of the first use.
 */
function isRetryAllowed(row: FamilyRow, { isAuthenticated }: RefreshingClient, network: string | null): boolean {
  return row.rotated_for <= RETRY_WINDOW_MS && (isAuthenticated || isSameNetwork(row.rotated_network, network));
}
