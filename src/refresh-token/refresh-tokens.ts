import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { InactiveReason, StoredToken } from '../access-token/inactive-reason.js';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { derivedSecret, randomSecret, sha256 } from '../platform/secret.js';
import { CallerNetworks, isSameNetwork } from '../session/caller-networks.js';
import { Endings } from '../session/endings.js';
import { TokenValidity } from '../session/token-validity.js';
import {
  claimsOfFamily,
  contentOf,
  END_FAMILY,
  type FamilyRow,
  FIND_FAMILY,
  HOUR_MS,
  type RefreshContent,
  ROTATE,
  refreshEvent,
} from './family-statements.js';
import { RefreshFamily } from './refresh-family.entity.js';

/** A client that lost the response may retry for this time after a rotation, from any network (protocol §3.9). */
const RETRY_FROM_ANY_NETWORK_MS = 30_000;
/** The same from the network of the first use, or for a client that authenticates. */
const RETRY_MS = 120_000;
const FAMILY_ID_BYTES = 16;

/** The region, then F with 16 bytes and R with 32 bytes, both in base64url. */
const REFRESH_TOKEN = /^(?<region>[A-Za-z0-9-]{1,16}):(?<family>[\w-]{22})\.(?<secret>[\w-]{43})$/;

/** F and R of a refresh token. */
interface TokenParts {
  family: string;
  secret: string;
}

/** The client that presents a refresh token. */
interface RefreshingClient {
  clientId: string;
  isAuthenticated: boolean;
}

/** Long ago, so that the hour of the rotations begins with the first one. */
const NOT_COUNTED = new Date(0);

/** Refresh tokens of agents: rotated on each use, with detection of reuse (RFC 9700 §4.14). */
@Injectable()
export class RefreshTokens {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly endings: Endings,
    private readonly validity: TokenValidity,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
    private readonly networks: CallerNetworks,
  ) {}

  /**
   * Creates a family in a transaction and returns its first refresh token.
   *
   * @param grantedAt when access was granted, in milliseconds since 1970
   */
  async beginIn(
    manager: EntityManager,
    id: string,
    { agentId, clientId, organizationId, scope, generation }: RefreshContent,
    grantedAt: number,
  ): Promise<string> {
    const [familyKey, secret] = [randomSecret('base64url', FAMILY_ID_BYTES), randomSecret('base64url')];
    await manager.insert(RefreshFamily, {
      ...{ id, familyHash: sha256(familyKey), currentHash: sha256(secret), agentId, clientId, organizationId, scope },
      ...{ generation, begunAt: new Date(grantedAt) },
      ...{ rotatedAt: new Date(this.clock.now()), countedSince: NOT_COUNTED, rotations: 0, expiresAt: this.expiry() },
    });
    return this.tokenOf(familyKey, secret);
  }

  /**
   * Replaces the current token of a family by its successor (protocol §3.9).
   *
   * @param decide returns the access that this response gives; if it throws, the token stays usable
   * @returns this access, the next refresh token, and the family's id, with which the `jti` of its access tokens begins
   * @throws OAuthError `invalid_grant`; `temporarily_unavailable` after too many rotations
   */
  async rotate<Access>(
    refreshToken: string,
    client: RefreshingClient,
    decide: (granted: RefreshContent) => Promise<Access>,
  ): Promise<{ access: Access; family: string; refreshToken: string }> {
    const token = this.partsOf(refreshToken);
    if (!token) throw OAuthError.invalidGrant('refresh token: malformed');
    const row = await this.findUsable(token, client);
    const used = sha256(token.secret);
    if (row.current_hash !== used && !this.isRetry(row, used, client)) return this.rejectReuse(row);
    const content = contentOf(row);
    const access = await decide(content);
    const successor =
      row.current_hash === used ? await this.successor(row, token, client) : retriedSuccessor(row, token);
    this.audit.record(refreshEvent('redeemed', row.id, content));
    return { access, family: row.id, refreshToken: this.tokenOf(token.family, successor) };
  }

  /** Finds the family of a refresh token. With `clientId` only a family of this client is found. */
  async familyOf(refreshToken: string, clientId?: string): Promise<string | undefined> {
    const token = this.partsOf(refreshToken);
    const row = token && (await this.find(token));
    return row && (clientId === undefined || row.client_id === clientId) ? row.id : undefined;
  }

  /** Describes a refresh token for the operator; `undefined` if no family of such a token is stored. */
  async describe(refreshToken: string): Promise<StoredToken | undefined> {
    const token = this.partsOf(refreshToken);
    const row = token && (await this.find(token));
    if (!row) return undefined;
    const { agentId: subject, clientId, organizationId } = contentOf(row);
    const inactiveReason = await this.inactiveReasonOf(row, sha256(token.secret));
    return {
      kind: 'refresh token',
      ...{ session: row.id, clientId, subject, organizationId, expiresAt: timeOf(row.expires_at) },
      ...(inactiveReason && { inactiveReason }),
    };
  }

  /** Ends a family with all its tokens, and what they were used for. */
  async end(id: string): Promise<void> {
    await this.endings.endFamily(id);
    await this.database.executeIdempotent(END_FAMILY, [new Date(this.clock.now()), id]);
  }

  private async find({ family }: TokenParts): Promise<FamilyRow | undefined> {
    const [row] = await this.database.select(FIND_FAMILY, [sha256(family)]);
    return row;
  }

  private async inactiveReasonOf(row: FamilyRow, hash: string): Promise<InactiveReason | undefined> {
    const endedReason = await this.validity.endedReason(claimsOfFamily(row));
    if (endedReason) return endedReason;
    if (row.ended_at !== null) return 'family_revoked';
    if (timeOf(row.expires_at) <= this.clock.now()) return 'expired';
    return row.current_hash === hash ? undefined : 'already_used';
  }

  private async findUsable(token: TokenParts, { clientId }: RefreshingClient): Promise<FamilyRow> {
    const row = await this.find(token);
    if (!row) throw OAuthError.invalidGrant('refresh token: unknown');
    if (row.client_id !== clientId) throw OAuthError.invalidGrant('refresh token: belongs to another client');
    if (row.ended_at !== null) throw OAuthError.invalidGrant('refresh token: its family has ended');
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('refresh token: expired');
    if (await this.validity.hasEnded(claimsOfFamily(row)))
      throw OAuthError.invalidGrant('refresh token: its family has ended');
    return row;
  }

  /** A parallel use of the same token gets the same successor. */
  private async successor(row: FamilyRow, token: TokenParts, client: RefreshingClient): Promise<string> {
    const [used, nonce] = [sha256(token.secret), randomSecret('base64url')];
    const next = derivedSecret(token.secret, nonce);
    const values = [sha256(next), used, nonce, this.networks.current(row.id), this.expiry()] as const;
    const condition = [row.id, used, new Date(this.clock.now())] as const;
    if ((await this.database.executeIdempotent(ROTATE, [...values, ...condition])) > 0) return next;
    const current = await this.findUsable(token, client);
    if (current.current_hash === used) throw tooManyRotations(current);
    return this.isRetry(current, used, client) ? retriedSuccessor(current, token) : this.rejectReuse(current);
  }

  /** A client without a secret proves nothing but the token, so a late retry must come from the network of the first. */
  private isRetry(row: FamilyRow, used: string, { isAuthenticated }: RefreshingClient): boolean {
    if (row.previous_hash !== used) return false;
    const rotatedForMs = Math.abs(row.rotated_for); // the clock of the database may have been set back
    if (rotatedForMs <= RETRY_FROM_ANY_NETWORK_MS) return true;
    const isSameCaller = isAuthenticated || isSameNetwork(row.rotated_network, this.networks.current(row.id));
    return rotatedForMs <= RETRY_MS && isSameCaller;
  }

  /** Ends the family, because the service cannot distinguish the client from a thief that has a token of the family. */
  private async rejectReuse(row: FamilyRow): Promise<never> {
    await this.end(row.id);
    this.audit.record(refreshEvent('replayed', row.id, contentOf(row)));
    throw OAuthError.invalidGrant('refresh token: used again');
  }

  /** `undefined` for a text that does not have the form of a refresh token of this region. */
  private partsOf(refreshToken: string): TokenParts | undefined {
    const parts = REFRESH_TOKEN.exec(refreshToken)?.groups;
    return parts?.region === this.configuration.TOKEN_REGION ? (parts as unknown as TokenParts) : undefined;
  }

  private tokenOf(family: string, secret: string): string {
    return `${this.configuration.TOKEN_REGION}:${family}.${secret}`;
  }

  private expiry(): Date {
    return new Date(this.clock.now() + this.configuration.REFRESH_TOKEN_TTL * 1000);
  }
}

/** The database has neither of the two tokens, and so cannot compute the successor. */
function retriedSuccessor(row: FamilyRow, token: TokenParts): string {
  return derivedSecret(token.secret, row.successor_nonce as string);
}

function tooManyRotations({ counted_for }: FamilyRow): OAuthError {
  return OAuthError.rateLimited(Math.max(1, Math.ceil((HOUR_MS - counted_for) / 1000)), 'rotations');
}
