import { Injectable } from '@nestjs/common';
import { type EntityManager, In, LessThan } from 'typeorm';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import { Clock } from '../platform/clock.js';
import { MAX_ACCESS_TOKEN_TTL_SECONDS } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
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
const MAX_EPOCH = 2 ** 31 - 1;
/** The number of rows that one statement inserts. */
const ROWS_PER_INSERT = 100;

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
    { epoch = MAX_EPOCH, audience = 'customer-api', isInFeed = true }: SessionEnding = {},
  ): Promise<void> {
    const rows = sessions.map(({ id, reason }) => ({ value: id, reason }));
    await this.recordIn(manager, { kind: 'session', number: epoch, audience, isInFeed }, rows);
  }

  /** Records in its transaction that tokens of a customer with a lower generation have ended. */
  async recordCustomer(manager: EntityManager, entityId: string, generation: number): Promise<void> {
    const rows = [{ value: entityId, reason: 'customer_generation' as const }];
    await this.recordIn(manager, { kind: 'subject', number: generation, audience: 'customer-api' }, rows);
  }

  /** Ends a customer's token that has no session, in a transaction. */
  async recordToken(manager: EntityManager, jti: string): Promise<void> {
    await this.recordIn(manager, { kind: 'token', audience: 'customer-api' }, [{ value: jti, reason: 'revoked' }]);
  }

  /** Ends the tokens that were issued to clients so far, in the transaction that deletes the clients, and after it. */
  async endClients(clientIds: string[], manager = this.database.manager): Promise<void> {
    const issuedBefore = new Date(this.clock.now() + CLIENT_MARGIN_SECONDS * 1000);
    const rows = clientIds.map((value) => ({ value, reason: 'client_revoked' as const }));
    await this.recordIn(manager, { kind: 'client', issuedBefore, audience: null }, rows);
  }

  /** Ends the tokens of suspended clients or organizations that were issued up to a time. */
  async endIssued(
    kind: 'client' | 'organization',
    issued: { key: string; issuedBefore: Date }[],
    manager: EntityManager,
  ): Promise<void> {
    for (const { key, issuedBefore } of issued) {
      const rows = [{ value: key, reason: `${kind}_suspended` as const }];
      await this.recordIn(manager, { kind, issuedBefore, audience: null }, rows);
    }
  }

  /**
   * An entry that exists is raised and published again only if more tokens end, so that replays of a code cannot
   * postpone its publication.
   */
  private async recordIn(
    manager: EntityManager,
    { kind, number = null, issuedBefore = FAR_FUTURE, audience, isInFeed = true }: EndedEntry,
    rows: { value: string; reason: InactiveReason }[],
  ): Promise<void> {
    const now = this.clock.now();
    const expiresAt = new Date(now + ENTRY_SECONDS * 1000);
    const publishedUntil = isInFeed ? null : new Date(now);
    const lower = number === null ? { issuedBefore: LessThan(issuedBefore) } : { number: LessThan(number) };
    for (const portion of portionsOf(rows, ROWS_PER_INSERT)) {
      const stored = { kind, value: In(valueList(portion.map(({ value }) => value))), ...lower };
      if (isInFeed) await manager.update(Ended, stored, { number, issuedBefore, expiresAt, publishedUntil });
      const entities = portion.map((row) => ({
        ...{ kind, number, issuedBefore, audience, expiresAt, publishedUntil },
        ...row,
      }));
      await manager.createQueryBuilder().insert().into(Ended).values(entities).orIgnore().execute();
    }
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

interface EndedEntry {
  kind: EndedKind;
  /** Of a session or a customer: the epoch or the generation. */
  number?: number | null;
  issuedBefore?: Date;
  audience: EndedAudience;
  isInFeed?: boolean;
}
