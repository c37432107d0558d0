import { Injectable } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { RevocationLimit } from '../access-token/feed/revocation-limit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-time.js';
import { callerNetwork, isSameNetwork } from '../platform/request-context/caller-network.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { claimsOfFamily, contentOf } from './family-content.js';
import { RefreshAudit } from './refresh-audit.js';
import type { FamilyToEnd, RefreshContent, RefreshingClient, Rotated } from './refresh-content.js';
import {
  END_FAMILY,
  type FamilyRow,
  FIND_FAMILY,
  INSERT_ANCESTOR,
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
    private readonly revocations: RevocationLimit,
    private readonly configuration: Configuration,
    private readonly audit: RefreshAudit,
  ) {}

  /**
   * Creates a family and returns its first refresh token.
   *
   * @param grantedAt when access was granted, in milliseconds since 1970
   */
  async begin(family: string, content: RefreshContent, grantedAt: number): Promise<string> {
    const { owner, clientId, organizationId, scope } = content;
    const { gen, ...lineage } = content.lineage;
    const isCustomer = owner.kind === 'customer';
    const { token, hash } = await this.newToken(family);
    const now = new Date(this.clock.now());
    await this.database.insert(INSERT_FAMILY, [
      ...([family, clientId] as const),
      ...(isCustomer ? (['', owner.id] as const) : ([owner.id, null] as const)),
      ...([organizationId, scope, isCustomer ? JSON.stringify(lineage) : null] as const),
      ...([hash, new Date(grantedAt), now, this.expiry(), gen] as const),
    ]);
    // After the family, so that the purge of the family also deletes the ancestors of a request that failed half-way.
    const ancestors = isCustomer ? [...new Set(lineage.ancestors)] : [];
    await Promise.all(ancestors.map((id) => this.database.insert(INSERT_ANCESTOR, [family, id])));
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
  async rotate<Access>(
    refreshToken: string,
    client: RefreshingClient,
    decide: (granted: RefreshContent) => Promise<Access>,
  ): Promise<Rotated<Access>> {
    const used = sha256(refreshToken);
    const row = await this.findUsable(used, client);
    const network = callerNetwork(row.id);
    const isRetry = row.previous_hash === used && isRetryAllowed(row, client, network);
    if (row.current_hash !== used && !isRetry) return this.rejectReuse(row);
    const content = contentOf(row);
    const access = await decide(content);
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
    this.audit.redeemed(row.id, content);
    return { access, family: row.id, refreshToken: next.token };
  }

  /** Finds the family of a refresh token. With `clientId` only a family of this client is found. */
  async familyOf(refreshToken: string, clientId?: string): Promise<FamilyToEnd | undefined> {
    const [row] = await this.database.select(FIND_FAMILY, [sha256(refreshToken)]);
    if (!row || (clientId !== undefined && row.client_id !== clientId)) return undefined;
    return { id: row.id, ownerKind: contentOf(row).owner.kind };
  }

  /**
   * Ends a family with all its tokens and their descendants.
   *
   * @param isInFeed whether resource servers that follow the feed learn of it
   */
  async end({ id, ownerKind }: FamilyToEnd, isInFeed = true): Promise<void> {
    await this.denylist.revokeFamily(id, ownerKind === 'agent' ? 'agent-api' : 'customer-api', isInFeed);
    await this.database.executeIdempotent(END_FAMILY, [new Date(this.clock.now()), id]);
  }

  private async findUsable(used: string, { clientId, ownerKind }: RefreshingClient): Promise<FamilyRow> {
    const [row] = await this.database.select(FIND_FAMILY, [used]);
    if (!row) throw OAuthError.invalidGrant('refresh token: unknown');
    if (contentOf(row).owner.kind !== ownerKind) throw OAuthError.invalidGrant('refresh token: of another endpoint');
    if (row.client_id !== clientId) throw OAuthError.invalidGrant('refresh token: belongs to another client');
    if (row.ended_at !== null) throw OAuthError.invalidGrant('refresh token: its family has ended');
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('refresh token: expired');
    if (row.replaced_at !== null && used !== row.current_hash && used !== row.previous_hash)
      throw OAuthError.invalidGrant('refresh token: replaced by a retry');
    if (await this.denylist.hasEnded(claimsOfFamily(row)))
      throw OAuthError.invalidGrant('refresh token: its family has ended');
    return row;
  }

  /** Ends the family, because the service cannot distinguish the client from a thief that has a token of the family. */
  private async rejectReuse(row: FamilyRow): Promise<never> {
    const ownerKind = contentOf(row).owner.kind;
    await this.end({ id: row.id, ownerKind }, ownerKind === 'agent' || this.revocations.admits());
    this.audit.replayed(row.id, contentOf(row));
    throw OAuthError.invalidGrant('refresh token: used again');
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
