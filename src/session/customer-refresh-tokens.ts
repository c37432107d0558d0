import { Injectable } from '@nestjs/common';
import type { InactiveReason, StoredToken } from '../access-token/inactive-reason.js';
import type { Actor } from '../access-token/token-claims.js';
import { Audit, party } from '../audit/audit.js';
import type { Customer } from '../customer/customer.js';
import { Customers } from '../customer/customers.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { sqlFlag, timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, type NotNull, selectStatement, writeStatement } from '../platform/database/statement.js';
import { derivedSecret, randomSecret, sha256 } from '../platform/secret.js';
import { Devices } from './devices.js';
import { RevocationLimit } from './feed/revocation-limit.js';
import type { Session } from './session.entity.js';
import { Sessions } from './sessions.js';
import { TokenValidity } from './token-validity.js';
import { LostCodeError, type RedeemableCode, TransferCodes } from './transfer-codes.js';

/** The grant by which a client uses a customer's refresh tokens. */
export const REFRESH_TOKEN_GRANT = 'refresh_token';

const FAMILY_ID_BYTES = 16;
/** The region, then F with 16 bytes and R with 32 bytes, both in base64url. */
const REFRESH_TOKEN = /^(?<region>[A-Za-z0-9-]{1,16}):(?<family>[\w-]{22})\.(?<secret>[\w-]{43})$/;

/** F, which all refresh tokens of a session have in common, and R of one of them. */
interface TokenParts {
  family: string;
  secret: string;
}

/** Whether the client was deleted since it got the first refresh token. */
const CLIENT_ENDED = `EXISTS (SELECT 1 FROM ended WHERE kind = 'client' AND value = session.client_id
  AND issued_before >= session.redeemed_at)`;

const COLUMNS = ['id', 'customer_id', 'client_id', 'epoch', 'act', 'current_hash', 'seen_day', 'expires_at'] as const;
const NULLABLE_COLUMNS = ['previous_hash', 'successor_nonce'] as const;

type RefreshRow = NotNull<Omit<EntityRow<Session, (typeof COLUMNS)[number]>, 'act'>> &
  EntityRow<Session, 'act' | (typeof NULLABLE_COLUMNS)[number]> & {
    organization_id: string;
    group_id: string;
    generation: number;
    client_ended: number;
  };

const FIND = selectStatement<[familyHash: string], RefreshRow>({
  columns: [
    ...[...COLUMNS, ...NULLABLE_COLUMNS].map((column) => `session.${column}`),
    ...['customer.organization_id', 'customer.group_id', 'customer.generation'],
    `${sqlFlag(CLIENT_ENDED)} AS client_ended`,
  ],
  from: 'session JOIN customer ON customer.entity_id = session.customer_id WHERE session.family_hash = ?',
  batch: true,
});

/** One of several parallel uses of the current token matches the row. An ending has deleted it. */
const ROTATE = writeStatement<
  [
    nextHash: string,
    usedHash: string,
    nonce: string,
    usedAt: Date,
    today: number,
    expiresAt: Date,
    id: string,
    usedHash: string,
  ]
>(`UPDATE session SET current_hash = ?, previous_hash = ?, successor_nonce = ?, used_at = ?, seen_day = ?,
      expires_at = ?
    WHERE id = ? AND current_hash = ?`);

/** A retry is a use, too. Matches no row if the session was ended, or the successor was used. */
const NOTE_RETRY = writeStatement<[usedAt: Date, today: number, id: string, usedHash: string]>(
  'UPDATE session SET used_at = ?, seen_day = ? WHERE id = ? AND previous_hash = ?',
);

/** Refresh tokens of customers: rotated on each use, with detection of reuse (protocol §3.9 and §4.8). */
@Injectable()
export class CustomerRefreshTokens {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly configuration: Configuration,
    private readonly customers: Customers,
    private readonly sessions: Sessions,
    private readonly devices: Devices,
    private readonly codes: TransferCodes,
    private readonly validity: TokenValidity,
    private readonly revocationLimit: RevocationLimit,
    private readonly audit: Audit,
  ) {}

  /**
   * Redeems a transfer token for a device that keeps a refresh token.
   *
   * @returns the first refresh token
   * @throws OAuthError `invalid_grant` if the code has ended meanwhile; 429 if the customer has too many devices
   */
  async begin(code: RedeemableCode): Promise<string> {
    const [family, secret] = [randomSecret('base64url', FAMILY_ID_BYTES), randomSecret('base64url')];
    const { entityId, clientId, organizationId, session } = code;
    await this.codes.redeemForDevice(code, () =>
      this.database.transaction(async (manager) => {
        if (!(await this.customers.writeIn(manager, entityId, session.gen))) throw new LostCodeError();
        await this.devices.makeRoom(manager, await this.sessions.allOf(manager, entityId));
        await this.codes.redeemIn(manager, code, {
          kind: 'refresh',
          ...{ familyHash: sha256(family), currentHash: sha256(secret) },
          ...{ usedAt: new Date(this.clock.now()), seenDay: dayOf(this.clock.now()), expiresAt: this.expiry() },
        });
      }),
    );
    this.record('issued', { id: code.id, customer_id: entityId, client_id: clientId, organization_id: organizationId });
    return this.tokenOf(family, secret);
  }

  /**
   * Replaces a refresh token by its successor. A use of the predecessor while its successor is unused is a retry, and gets
   * the same successor.
   *
   * @param decide checks the customer's access; if it throws, the token stays usable
   * @throws OAuthError `invalid_grant`. Every other use of a token of the session ends the session
   */
  async refresh(
    refreshToken: string,
    clientId: string,
    decide: (organizationId: string) => void,
  ): Promise<{ customer: Customer; refreshToken: string }> {
    const token = this.partsOf(refreshToken);
    if (!token) throw OAuthError.invalidGrant('refresh token: malformed');
    const row = await this.usableRow(token, clientId);
    const used = sha256(token.secret);
    if (row.current_hash !== used && row.previous_hash !== used) return this.rejectReuse(row);
    decide(row.organization_id);
    const successor =
      row.current_hash === used ? await this.rotate(row, token, clientId) : await this.retry(row, token, clientId);
    this.record('redeemed', row);
    return { customer: customerOf(row), refreshToken: this.tokenOf(token.family, successor) };
  }

  /** The session of a refresh token, and its customer. With `clientId` only that of this client is found. */
  async sessionOf(refreshToken: string, clientId?: string): Promise<{ id: string; entityId: string } | undefined> {
    const token = this.partsOf(refreshToken);
    const row = token && (await this.rowOf(token));
    if (!row || (clientId !== undefined && row.client_id !== clientId)) return undefined;
    return { id: row.id, entityId: row.customer_id };
  }

  /** Describes a refresh token for the operator; `undefined` if no session with such a token is stored. */
  async describe(refreshToken: string): Promise<StoredToken | undefined> {
    const token = this.partsOf(refreshToken);
    const row = token && (await this.rowOf(token));
    if (!row) return undefined;
    const inactiveReason = await this.inactiveReasonOf(row, sha256(token.secret));
    return {
      kind: 'refresh token',
      ...{ clientId: row.client_id, subject: row.customer_id, organizationId: row.organization_id },
      ...{ expiresAt: timeOf(row.expires_at), session: row.id },
      ...(inactiveReason && { inactiveReason }),
    };
  }

  private async rowOf({ family }: TokenParts): Promise<RefreshRow | undefined> {
    return (await this.database.select(FIND, [sha256(family)]))[0];
  }

  private async inactiveReasonOf(row: RefreshRow, hash: string): Promise<InactiveReason | undefined> {
    if (row.client_ended !== 0) return 'client_revoked';
    if (row.act !== null && (await this.validity.actorHasEnded(JSON.parse(row.act) as Actor)))
      return 'ancestor_revoked';
    if (timeOf(row.expires_at) <= this.clock.now()) return 'expired';
    // the predecessor may be used again, until its successor is used
    return row.current_hash === hash || row.previous_hash === hash ? undefined : 'already_used';
  }

  private async usableRow(token: TokenParts, clientId: string): Promise<RefreshRow> {
    const row = await this.rowOf(token);
    if (!row) throw OAuthError.invalidGrant('refresh token: unknown');
    if (row.client_id !== clientId) throw OAuthError.invalidGrant('refresh token: belongs to another client');
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('refresh token: expired');
    if (
      row.client_ended !== 0 ||
      (row.act !== null && (await this.validity.actorHasEnded(JSON.parse(row.act) as Actor)))
    )
      throw OAuthError.invalidGrant('refresh token: its session has ended');
    return row;
  }

  /** A parallel use of the same token gets the same successor. */
  private async rotate(row: RefreshRow, token: TokenParts, clientId: string): Promise<string> {
    const [used, nonce] = [sha256(token.secret), randomSecret('base64url')];
    const next = derivedSecret(token.secret, nonce);
    const now = this.clock.now();
    const values = [sha256(next), used, nonce, new Date(now), dayOf(now), this.expiry()] as const;
    if ((await this.database.executeIdempotent(ROTATE, [...values, row.id, used])) > 0) return next;
    const current = await this.usableRow(token, clientId);
    return current.previous_hash === used ? retried(current, token) : this.rejectReuse(current);
  }

  /** The first retry of a day notes the day, as each first visit of a browser does. */
  private async retry(row: RefreshRow, token: TokenParts, clientId: string): Promise<string> {
    const now = this.clock.now();
    const used = sha256(token.secret);
    if (row.seen_day < dayOf(now)) {
      const noted = await this.database.executeIdempotent(NOTE_RETRY, [new Date(now), dayOf(now), row.id, used]);
      if (noted === 0) return this.rejectReuse(await this.usableRow(token, clientId));
    }
    return retried(row, token);
  }

  /** Ends the session, because the service cannot distinguish the client from a thief that has one of its tokens. */
  private async rejectReuse(row: RefreshRow): Promise<never> {
    const entityId = row.customer_id;
    const counted = this.revocationLimit.admit();
    const entries = await this.customers.change({ entityId }, (manager) =>
      this.sessions.endOneIn(manager, entityId, row.id, 'family_revoked', { isInFeed: counted !== undefined }),
    );
    counted?.setEntries(entries ?? 0);
    this.record('replayed', row);
    throw OAuthError.invalidGrant('refresh token: used again');
  }

  private record(
    action: 'issued' | 'redeemed' | 'replayed',
    row: Pick<RefreshRow, 'id' | 'customer_id' | 'client_id' | 'organization_id'>,
  ): void {
    const { id, customer_id, client_id: clientId, organization_id: organizationId } = row;
    this.audit.record({
      event: `refresh_token.${action}`,
      outcome: action === 'replayed' ? 'failure' : 'success',
      actor: party('client', clientId),
      subject: party('customer', customer_id),
      ...{ organizationId, clientId, details: { session: id } },
    });
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
function retried({ successor_nonce }: RefreshRow, { secret }: TokenParts): string {
  return derivedSecret(secret, successor_nonce as string);
}

function customerOf(row: RefreshRow): Customer {
  const { customer_id: entityId, organization_id: organizationId, group_id: groupId, generation, id: sid } = row;
  const act = row.act === null ? undefined : (JSON.parse(row.act) as Actor);
  const session = { gen: generation, sid, ep: row.epoch, ...(act && { act }) };
  return { entityId, organizationId, groupId, generation, session };
}
