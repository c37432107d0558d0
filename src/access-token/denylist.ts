import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import {
  insertIgnoreStatement,
  selectStatement,
  type WriteStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { endedCondition, endingRowsStatement, reasonOf } from './ended-statement.js';
import type { InactiveReason } from './inactive-reason.js';
import { RecordedValues } from './recorded-values.js';
import { Revocation, type RevocationAudience, type RevocationKind } from './revocation.entity.js';
import type { Audience, RevocableClaims } from './token-lineage.js';

/** Later than the `iat` of any token, so that a revocation by id applies to tokens of any age. */
const FAR_FUTURE = new Date('9999-12-31T00:00:00Z');
/** Covers tokens that other processes still issue for a deleted client, and clocks that are ahead. */
const CLIENT_MARGIN_SECONDS = 40;

/**
 * A row is published again only after a change that ends more tokens, so that replays of a code cannot postpone its
 * publication. `published_until` comes first, because it reads the old `issued_before`, and MySQL assigns from left to
 * right.
 */
const UPDATE = writeStatement<
  [endsMoreFrom: Date, issuedBefore: Date, expiresAt: Date, kind: RevocationKind, value: string]
>(`UPDATE revocation SET published_until = CASE WHEN issued_before < ? OR position IS NULL THEN NULL
      ELSE published_until END, issued_before = ?, expires_at = ? WHERE kind = ? AND value = ?`);

const INSERT = insertIgnoreStatement({
  into: Revocation,
  columns: ['kind', 'value', 'issued_before', 'expires_at', 'audience', 'published_until'],
});

const FIND_KEPT_OUT = selectStatement<[family: string], unknown>(
  `SELECT 1 FROM revocation
    WHERE kind = 'family' AND value = ? AND position IS NULL AND published_until IS NOT NULL`,
);

/** The revoked tokens. Each check reads the database, so that a revocation applies immediately in every process. */
@Injectable()
export class Denylist {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly recorded: RecordedValues,
  ) {}

  /** Whether a token has ended (protocol §3.13). One statement decides. */
  async hasEnded(claims: RevocableClaims): Promise<boolean> {
    const { condition, parameters } = endedCondition(claims);
    const [row] = await this.database.select(condition.statement, parameters);
    return row === undefined || row.ended !== 0;
  }

  /** Why a token has ended; `undefined` if it has not. Only a token that has ended costs a second statement. */
  async endedReason(claims: RevocableClaims): Promise<InactiveReason | undefined> {
    if (!(await this.hasEnded(claims))) return undefined;
    const { statement, parameters } = endingRowsStatement(claims);
    return reasonOf(await this.database.select(statement, parameters), claims);
  }

  /** Ends a token and its descendants. A trusted issuer's token has no `aud`, and may live longer than own ones. */
  async revokeToken({ jti, exp, aud = 'customer-api' }: EndedToken): Promise<void> {
    const { token } = await this.recorded.retentionSeconds();
    const retentionSeconds = Math.max(exp - this.clock.seconds(), token);
    await this.revoke({ kind: 'jti', value: jti, retentionSeconds, audience: aud });
  }

  /** Ends all tokens of a family, later ones included. `isInFeed` is false if the limit of revocations is reached. */
  async revokeFamily(family: string, audience: Audience, isInFeed = true): Promise<void> {
    const { family: retentionSeconds } = await this.recorded.retentionSeconds();
    await this.revoke({ kind: 'family', value: family, retentionSeconds, audience, isInFeed });
  }

  /** Whether a family has ended without an entry of the feed, because the limit of revocations was reached. */
  async isKeptOutOfFeed(family: string): Promise<boolean> {
    return (await this.database.select(FIND_KEPT_OUT, [family])).length > 0;
  }

  /** Ends the tokens that were issued to a client so far, in the transaction that deletes the client. */
  async revokeClient(clientId: string, manager?: EntityManager): Promise<void> {
    const { family: retentionSeconds } = await this.recorded.retentionSeconds();
    const issuedBefore = new Date(this.clock.now() + CLIENT_MARGIN_SECONDS * 1000);
    await this.revoke({ kind: 'client', value: clientId, issuedBefore, retentionSeconds, audience: null }, manager);
  }

  private async revoke(
    { kind, value, issuedBefore = FAR_FUTURE, retentionSeconds, audience, isInFeed = true }: RevocationToWrite,
    manager?: EntityManager,
  ): Promise<void> {
    const write = <Parameters extends SqlValue[]>(statement: WriteStatement<Parameters>, parameters: Parameters) =>
      manager ? writeIn(manager, statement, parameters) : this.database.executeIdempotent(statement, parameters);
    const now = this.clock.now();
    const expiresAt = new Date(now + retentionSeconds * 1000);
    const update = () => write(UPDATE, [issuedBefore, issuedBefore, expiresAt, kind, value]);
    if (isInFeed && (await update()) > 0) return;
    // the publisher takes only rows without `published_until`
    const publishedUntil = isInFeed ? null : new Date(now);
    const inserted = await write(INSERT, [kind, value, issuedBefore, expiresAt, audience, publishedUntil]);
    // a parallel revocation may have inserted the row, and kept it out of the feed
    if (isInFeed && inserted === 0) await update();
  }
}

/** The token to end, or a sign-in session, which has no tokens. */
interface EndedToken {
  jti: string;
  exp: number;
  aud?: Exclude<RevocationAudience, null>;
}

interface RevocationToWrite {
  kind: RevocationKind;
  value: string;
  issuedBefore?: Date;
  retentionSeconds: number;
  audience: RevocationAudience;
  isInFeed?: boolean;
}
