import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { insertIgnoreStatement, writeStatement } from '../platform/database/statement.js';
import { endedStatement } from './ended-statement.js';
import { RecordedValues } from './recorded-values.js';
import { Revocation, type RevocationKind } from './revocation.entity.js';
import type { RevocableClaims } from './token-lineage.js';

/** Later than any token is issued: an id that names tokens revokes them whenever they were issued. */
const FAR_FUTURE = new Date('9999-12-31T00:00:00Z');
/** Seconds for which other processes may still issue tokens for a deleted client, and by which their clocks may be ahead. */
const CLIENT_MARGIN_SECONDS = 40;

const UPDATE = writeStatement<
  [issuedBefore: Date, expiresAt: Date, generationRaisedAt: Date | null, kind: RevocationKind, value: string]
>('UPDATE revocation SET issued_before = ?, expires_at = ?, generation_raised_at = ? WHERE kind = ? AND value = ?');

const INSERT = insertIgnoreStatement({
  into: Revocation,
  columns: ['kind', 'value', 'issued_before', 'expires_at', 'generation_raised_at'],
});

/** Tokens that ended before their time. It is read from the database at each use, so that it holds at once on every pod. */
@Injectable()
export class Denylist {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly recorded: RecordedValues,
  ) {}

  /**
   * Whether a token has ended: its `jti`, its family or one of its ancestors is revoked, its client was deleted after the
   * token was issued, or its subject or its agent has a higher generation. One statement decides.
   */
  async hasEnded(claims: RevocableClaims): Promise<boolean> {
    const { statement, parameters } = endedStatement(claims);
    const [row] = await this.database.select(statement, parameters);
    return row === undefined || Number(row.ended) !== 0;
  }

  /**
   * Ends one token and its descendants. The `jti` of a trusted issuer's token is a hash that includes the issuer.
   *
   * @param exp seconds since 1970; a trusted issuer's token may live longer than any of this service's
   */
  async revokeToken({ jti, exp }: { jti: string; exp: number }): Promise<void> {
    const { token } = await this.recorded.retentionSeconds();
    await this.revoke('jti', jti, FAR_FUTURE, Math.max(exp - this.clock.seconds(), token));
  }

  /** Ends every token whose `jti` begins with the family's id, also those still to be issued, and their descendants. */
  async revokeFamily(family: string): Promise<void> {
    const { family: retention } = await this.recorded.retentionSeconds();
    await this.revoke('family', family, FAR_FUTURE, retention);
  }

  /** Ends the tokens that a client has now. */
  async revokeClient(clientId: string): Promise<void> {
    const { family } = await this.recorded.retentionSeconds();
    await this.revoke('client', clientId, new Date(this.clock.now() + CLIENT_MARGIN_SECONDS * 1000), family);
  }

  /**
   * Revokes a customer or an agent for processes of release 1, which cannot read generations. It writes nothing once the
   * upgrade is complete.
   *
   * @param moment `before` the generation is raised the row counts for every process, in case the change fails. `after` it the
   *   generation is exact, and the row counts for release 1 alone. An `erased` customer gets no later token that it could hit.
   */
  async revokeForRelease1(subject: string, moment: 'before' | 'after' | 'erased'): Promise<void> {
    if (!(await this.recorded.isUpgradeUnderWay())) return;
    const { family } = await this.recorded.retentionSeconds();
    const until = moment === 'erased' ? FAR_FUTURE : new Date(this.clock.now());
    await this.revoke('subject', subject, until, family, moment === 'after' ? until : null);
  }

  private async revoke(
    kind: RevocationKind,
    value: string,
    issuedBefore: Date,
    retentionSeconds: number,
    generationRaisedAt: Date | null = null,
  ): Promise<void> {
    const expires = new Date(this.clock.now() + retentionSeconds * 1000);
    const row: [Date, Date, Date | null] = [issuedBefore, expires, generationRaisedAt];
    if ((await this.database.executeIdempotent(UPDATE, [...row, kind, value])) > 0) return;
    await this.database.executeIdempotent(INSERT, [kind, value, ...row]);
  }
}
