import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import type { RevocableClaims } from '../access-token/token-claims.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import { insertIgnoreStatement, type WriteStatement, writeStatement } from '../platform/database/statement.js';
import { placeholdersFor, portionsOf, valueList } from '../platform/database/value-list.js';
import { Ended, type EndedAudience, type EndedKind } from './ended.entity.js';
import { ENTRY_SECONDS, RecordedValues } from './recorded-values.js';
import { MAX_IDLE_DAYS } from './session-lifetime.js';

/** Later than the `iat` of any token, so that an entry applies to tokens of any age. */
const FAR_FUTURE = new Date('9999-12-31T00:00:00Z');
/** Covers tokens that other processes still issue for a deleted client, and clocks that are ahead. */
const CLIENT_MARGIN_SECONDS = 40;
/**
 * How long the ending of an agent's token is retained: the devices that the agent made end with it, and none that has
 * ended is in force for longer, because a visit that finds it ended does not move its end.
 */
const DEVICE_SECONDS = (MAX_IDLE_DAYS + 2) * 86_400;
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

/** Two writes for one agent: its row gets the generation, and is created if there is none. */
const AGENT_GENERATION = '(SELECT generation FROM agent WHERE agent.id = ended.value)';
const RAISE_AGENT = writeStatement<[expiresAt: Date, agentId: string]>(`UPDATE ended
  SET published_until = CASE WHEN number < ${AGENT_GENERATION} THEN NULL ELSE published_until END,
    number = COALESCE(${AGENT_GENERATION}, number), expires_at = ?
  WHERE kind = 'subject' AND value = ?`);
const INSERT_AGENT = writeStatement<[issuedBefore: Date, expiresAt: Date, agentId: string]>(
  ({ insertIgnore }) => `${insertIgnore} INTO ended (kind, value, number, reason, issued_before, expires_at, audience)
    SELECT 'subject', id, generation, 'agent_generation', ?, ?, 'agent-api' FROM agent WHERE id = ? AND generation > 0`,
);

/** Records what has ended, for the verifiers that follow the feed and as the denylist of tokens without a row. */
@Injectable()
export class Endings {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly recorded: RecordedValues,
  ) {}

  /**
   * Records sessions of customers in the transaction that ends them.
   *
   * @param epoch tokens with a lower epoch have ended; if omitted, all, because the sessions are deleted
   * @param isInFeed false if the limit of revocations is reached
   */
  async recordSessions(
    manager: EntityManager,
    sessions: { id: string; reason: InactiveReason }[],
    { epoch = MAX_EPOCH_COUNT, isInFeed = true } = {},
  ): Promise<void> {
    const rows = sessions.map(({ id, reason }) => ({ value: id, reason }));
    await this.raiseIn(manager, 'session', rows, epoch, isInFeed);
  }

  /** Records in its transaction that tokens of a customer with a lower generation have ended. */
  async recordCustomer(manager: EntityManager, entityId: string, generation: number): Promise<void> {
    await this.raiseIn(manager, 'subject', [{ value: entityId, reason: 'customer_generation' }], generation);
  }

  /** @param manager of the transaction that has raised the generations of these agents */
  async recordAgents(manager: EntityManager, agentIds: string[]): Promise<void> {
    const expiresAt = this.expiry(ENTRY_SECONDS);
    for (const id of agentIds) {
      await writeIn(manager, RAISE_AGENT, [expiresAt, id]);
      await writeIn(manager, INSERT_AGENT, [FAR_FUTURE, expiresAt, id]);
    }
  }

  /** Ends a customer's token that has no session, in a transaction. */
  async recordToken(manager: EntityManager, jti: string): Promise<void> {
    const entry = { kind: 'token', value: jti, reason: 'revoked', audience: 'customer-api' } as const;
    await this.end({ ...entry, seconds: ENTRY_SECONDS }, manager);
  }

  /** Ends a token of an agent, and what it was used for. A trusted issuer's token has no `aud`. */
  async endAgentToken({ jti, aud = 'customer-api' }: Pick<RevocableClaims, 'jti' | 'aud'>): Promise<void> {
    await this.end({ kind: 'token', value: jti, reason: 'revoked', audience: aud, seconds: await this.agentSeconds() });
  }

  /** Ends a sign-in session of the page, which has no tokens. */
  async endSignIn(id: string): Promise<void> {
    await this.end({ kind: 'token', value: id, reason: 'revoked', seconds: ENTRY_SECONDS, audience: 'none' });
  }

  /** Ends all tokens of an agent's refresh family, later ones included, and what they were used for. */
  async endFamily(family: string): Promise<void> {
    const entry = { kind: 'family', value: family, reason: 'family_revoked', audience: 'agent-api' } as const;
    await this.end({ ...entry, seconds: await this.agentSeconds() });
  }

  /** Ends the tokens that were issued to a client so far, in the transaction that deletes the client. */
  async endClient(clientId: string, manager?: EntityManager): Promise<void> {
    const seconds = await this.recorded.familySeconds();
    const issuedBefore = new Date(this.clock.now() + CLIENT_MARGIN_SECONDS * 1000);
    const entry = { kind: 'client', value: clientId, reason: 'client_revoked', seconds, audience: null } as const;
    await this.end({ ...entry, issuedBefore }, manager);
  }

  /** Entries that exist get the number if it is higher, and are published again; those of the feed stay in the feed. */
  private async raiseIn(
    manager: EntityManager,
    kind: EndedKind,
    rows: { value: string; reason: InactiveReason }[],
    number: number,
    isInFeed = true,
  ): Promise<void> {
    const expiresAt = this.expiry(ENTRY_SECONDS);
    const publishedUntil = isInFeed ? null : new Date(this.clock.now());
    for (const portion of portionsOf(rows, ROWS_PER_INSERT_COUNT)) {
      if (isInFeed) await this.raiseExistingIn(manager, kind, portion, number, expiresAt);
      const common = { kind, number, issuedBefore: FAR_FUTURE, expiresAt, publishedUntil };
      const entities = portion.map((row) => ({ ...common, ...row, audience: 'customer-api' as const }));
      await manager.createQueryBuilder().insert().into(Ended).values(entities).orIgnore().execute();
    }
  }

  private async raiseExistingIn(
    manager: EntityManager,
    kind: EndedKind,
    rows: { value: string }[],
    number: number,
    expiresAt: Date,
  ): Promise<void> {
    const values = valueList(rows.map(({ value }) => value));
    const raise = writeStatement<SqlValue[]>(
      `UPDATE ended SET number = ?, published_until = NULL, expires_at = ?
        WHERE kind = ? AND value IN (${placeholdersFor(values)}) AND number < ?`,
    );
    await writeIn(manager, raise, [number, expiresAt, kind, ...values, number]);
  }

  private async end(
    { kind, value, reason, issuedBefore = FAR_FUTURE, seconds, audience }: EndedEntry,
    manager?: EntityManager,
  ): Promise<void> {
    const write = <Parameters extends SqlValue[]>(statement: WriteStatement<Parameters>, parameters: Parameters) =>
      manager ? writeIn(manager, statement, parameters) : this.database.executeIdempotent(statement, parameters);
    const expiresAt = this.expiry(seconds);
    const update = () => write(UPDATE, [issuedBefore, issuedBefore, expiresAt, kind, value]);
    if ((await update()) > 0) return;
    const row = [kind, value, null, reason, issuedBefore, expiresAt, audience, null] as const;
    // a parallel request may have inserted the row
    if ((await write(INSERT, [...row])) === 0) await update();
  }

  private async agentSeconds(): Promise<number> {
    return Math.max(await this.recorded.familySeconds(), DEVICE_SECONDS);
  }

  private expiry(seconds: number): Date {
    return new Date(this.clock.now() + seconds * 1000);
  }
}

interface EndedEntry {
  kind: EndedKind;
  value: string;
  reason: InactiveReason;
  issuedBefore?: Date;
  seconds: number;
  audience: EndedAudience;
}
