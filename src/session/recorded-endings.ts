import { Injectable } from '@nestjs/common';
import { type EntityManager, In, LessThan } from 'typeorm';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import { Clock } from '../platform/clock.js';
import { MAX_ACCESS_TOKEN_TTL_SECONDS } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import { insertIgnoreStatement, type WriteStatement, writeStatement } from '../platform/database/statement.js';
import { portionsOf, valueList } from '../platform/database/value-list.js';
import { Ended, type EndedAudience, type EndedKind } from './ended.entity.js';

/** Later than the `iat` of any token, so that an entry applies to tokens of any age. */
const FAR_FUTURE = new Date('9999-12-31T00:00:00Z');
/** Covers requests under way and clocks that differ. */
const RETENTION_MARGIN_SECONDS = 120;
/** The time for which an entry is retained. No access token has a longer lifetime. */
export const ENTRY_SECONDS = MAX_ACCESS_TOKEN_TTL_SECONDS + RETENTION_MARGIN_SECONDS;
/** Covers tokens that other processes still issue for a deleted client, and clocks that are ahead. */
const CLIENT_MARGIN_SECONDS = 40;
/** The number in the entry of a session that is gone: later than every epoch. */
const MAX_EPOCH_COUNT = 2 ** 31 - 1;
/** The number of rows that one statement inserts. */
const ROWS_PER_INSERT_COUNT = 100;

/**
 * A row is published again only after a change that ends more tokens, so that replays of a code cannot postpone its
 * publication. `published_until` comes first, because it reads the old `issued_before`, and MySQL assigns from left to
 * right.
 */
const UPDATE = writeStatement<
  [endsMoreFrom: Date, issuedBefore: Date, expiresAt: Date, kind: EndedKind, value: string]
>(`UPDATE ended SET published_until = CASE WHEN issued_before < ? OR position IS NULL THEN NULL
      ELSE published_until END, issued_before = ?, expires_at = ? WHERE kind = ? AND value = ?`);

const COLUMNS = [
  'kind',
  'value',
  'number',
  'reason',
  'issued_before',
  'expires_at',
  'audience',
  'published_until',
] as const;

const INSERT = insertIgnoreStatement({ into: Ended, columns: COLUMNS });

/** Records what has ended: for the verifiers that follow the feed, and of tokens that have no session. */
@Injectable()
export class RecordedEndings {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Records sessions in the transaction that ends them. */
  async recordSessions(
    manager: EntityManager,
    sessions: { id: string; reason: InactiveReason }[],
    { epoch = MAX_EPOCH_COUNT, audience = 'customer-api', isInFeed = true }: SessionEnding = {},
  ): Promise<void> {
    const rows = sessions.map(({ id, reason }) => ({ value: id, reason }));
    await this.raiseIn(manager, { kind: 'session', number: epoch, audience, isInFeed }, rows);
  }

  /** Records in its transaction that tokens of a customer with a lower generation have ended. */
  async recordCustomer(manager: EntityManager, entityId: string, generation: number): Promise<void> {
    const entry = { kind: 'subject', number: generation, audience: 'customer-api', isInFeed: true } as const;
    await this.raiseIn(manager, entry, [{ value: entityId, reason: 'customer_generation' }]);
  }

  /** Ends a customer's token that has no session, in a transaction. */
  async recordToken(manager: EntityManager, jti: string): Promise<void> {
    const entry = { kind: 'token', value: jti, reason: 'revoked', audience: 'customer-api' } as const;
    await this.end(entry, manager);
  }

  /** Ends the tokens that were issued to clients so far, in the transaction that deletes the clients, and after it. */
  async endClients(clientIds: string[], manager?: EntityManager): Promise<void> {
    const issuedBefore = new Date(this.clock.now() + CLIENT_MARGIN_SECONDS * 1000);
    for (const value of clientIds) {
      const entry = { kind: 'client', value, reason: 'client_revoked', audience: null } as const;
      await this.end({ ...entry, issuedBefore }, manager);
    }
  }

  /** Ends the tokens of suspended clients or organizations that were issued up to a time. */
  async endIssued(
    kind: 'client' | 'organization',
    issued: { key: string; issuedBefore: Date }[],
    manager: EntityManager,
  ): Promise<void> {
    for (const { key, issuedBefore } of issued) {
      const entry = { kind, value: key, reason: `${kind}_suspended`, audience: null } as const;
      await this.end({ ...entry, issuedBefore }, manager);
    }
  }

  /** Entries that exist get the number if it is higher, and are published again; those of the feed stay in the feed. */
  private async raiseIn(
    manager: EntityManager,
    { isInFeed, ...entry }: RaisedEntry & { isInFeed: boolean },
    rows: { value: string; reason: InactiveReason }[],
  ): Promise<void> {
    const expiresAt = this.expiry();
    const publishedUntil = isInFeed ? null : new Date(this.clock.now());
    for (const portion of portionsOf(rows, ROWS_PER_INSERT_COUNT)) {
      if (isInFeed) await this.raiseExistingIn(manager, entry, portion, expiresAt);
      const common = { ...entry, issuedBefore: FAR_FUTURE, expiresAt, publishedUntil };
      const entities = portion.map((row) => ({ ...common, ...row }));
      await manager.createQueryBuilder().insert().into(Ended).values(entities).orIgnore().execute();
    }
  }

  private async raiseExistingIn(
    manager: EntityManager,
    { kind, number }: RaisedEntry,
    rows: { value: string }[],
    expiresAt: Date,
  ): Promise<void> {
    const lower = { kind, value: In(valueList(rows.map(({ value }) => value))), number: LessThan(number) };
    await manager.update(Ended, lower, { number, publishedUntil: null, expiresAt });
  }

  private async end(
    { kind, value, reason, issuedBefore = FAR_FUTURE, audience }: EndedEntry,
    manager?: EntityManager,
  ): Promise<void> {
    const write = <Parameters extends SqlValue[]>(statement: WriteStatement<Parameters>, parameters: Parameters) =>
      manager ? writeIn(manager, statement, parameters) : this.database.execute(statement, parameters);
    const expiresAt = this.expiry();
    const update = () => write(UPDATE, [issuedBefore, issuedBefore, expiresAt, kind, value]);
    if ((await update()) > 0) return;
    const row = [kind, value, null, reason, issuedBefore, expiresAt, audience, null] as const;
    // a parallel request may have inserted the row
    if ((await write(INSERT, [...row])) === 0) await update();
  }

  private expiry(): Date {
    return new Date(this.clock.now() + ENTRY_SECONDS * 1000);
  }
}

interface SessionEnding {
  /** Tokens with a lower epoch have ended; if omitted, all, because the sessions are deleted. */
  epoch?: number;
  /** `null` for sessions of agents, whose entries also concern the customer tokens that they obtained. */
  audience?: EndedAudience;
  /** False if the limit of revocations is reached. */
  isInFeed?: boolean;
}

interface RaisedEntry {
  kind: EndedKind;
  number: number;
  audience: EndedAudience;
}

interface EndedEntry {
  kind: EndedKind;
  value: string;
  reason: InactiveReason;
  issuedBefore?: Date;
  audience: EndedAudience;
}
