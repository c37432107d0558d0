import { randomInt } from 'node:crypto';
import { Injectable, ServiceUnavailableException } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { sqlFlag, timeOf } from '../platform/database/sql-dialect.js';
import {
  type BoundWrite,
  bindWrite,
  type EntityRow,
  type NotNull,
  type SelectStatement,
  selectStatement,
  writeStatement,
  writesTogether,
} from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import type { CustomerEvent } from './customer-event.entity.js';
import type { Ended } from './ended.entity.js';
import { RevocationFeedState } from './revocation-feed-state.entity.js';

/** The column is a signed integer of 32 bits. */
const MAX_HISTORY_IDS = 2 ** 31 - 1;
/** The most revocations, and the most events, that get one position. A page of either has at least two positions. */
export const MAX_ROWS_PER_POSITION = 500;
/** Far above one position, because a full page leaves out its last one. More rows would delay other requests. */
export const ROWS_PER_PAGE = 10 * MAX_ROWS_PER_POSITION;
/** The largest number of waiting revocations that is counted. Beyond it, the number of entries is unknown. */
export const MAX_WAITING_ENTRIES = 100_000;

const STATE_COLUMNS = ['history', 'position', 'publisher', 'has_backlog', 'entries', 'entries_count'] as const;

export interface StoredFeedState extends EntityRow<RevocationFeedState, (typeof STATE_COLUMNS)[number]> {
  /** 1 if committed revocations or events wait for their positions. */
  is_waiting: number;
  /** The time of the database. */
  read_at: Date | string;
}

const FIND_STATE = selectStatement<[], StoredFeedState>({
  columns: [
    ...STATE_COLUMNS,
    ({ now }) => `${now} AS read_at`,
    `${sqlFlag(`EXISTS (SELECT 1 FROM ended WHERE published_until IS NULL)
      OR EXISTS (SELECT 1 FROM customer_event WHERE position IS NULL)`)} AS is_waiting`,
  ],
  from: 'revocation_feed WHERE id = 1',
  batch: true,
});

/** A row that waits for a position. A row that was published before and changed since has its earlier position. */
type WaitingRevocation = EntityRow<Ended, 'kind' | 'value' | 'position'>;
type WaitingEvent = EntityRow<CustomerEvent, 'id'>;

/** What waits for a position, of each at most as many rows as one position can have. */
export interface WaitingRows {
  revocations: WaitingRevocation[];
  events: WaitingEvent[];
}

const SELECT_WAITING = `SELECT kind, value, position FROM ended WHERE published_until IS NULL
  LIMIT ${MAX_ROWS_PER_POSITION}`;
const SELECT_WAITING_EVENTS = `SELECT id FROM customer_event WHERE position IS NULL LIMIT ${MAX_ROWS_PER_POSITION}`;

/** Statements that find what waits for a position. */
interface Finders {
  revocations: SelectStatement<[], WaitingRevocation>;
  events: SelectStatement<[], WaitingEvent>;
}

/** Reads committed rows, also those that another transaction has locked. */
const FIND_WAITING: Finders = {
  revocations: selectStatement(SELECT_WAITING),
  events: selectStatement(SELECT_WAITING_EVENTS),
};

/** A row that another transaction is changing is left out, and gets its position after that transaction. */
const FIND_UNLOCKED: Finders = {
  revocations: selectStatement(({ skipLocked }) => SELECT_WAITING + skipLocked),
  events: selectStatement(({ skipLocked }) => SELECT_WAITING_EVENTS + skipLocked),
};

const COUNT_WAITING = selectStatement<[], { waiting: number }>(
  `SELECT COUNT(*) AS waiting FROM
    (SELECT 1 FROM ended WHERE published_until IS NULL LIMIT ${MAX_WAITING_ENTRIES}) AS some_rows`,
);

/** Matches no row if another process has published since the position was read. */
const RAISE_POSITION = writeStatement<
  [position: number, publisher: string, hasBacklog: boolean, rows: number, expectedPosition: number]
>(`UPDATE revocation_feed SET position = ?, publisher = ?, has_backlog = ?, entries = entries + ?
  WHERE id = 1 AND position = ?`);

/**
 * Gives rows of one kind a position, and limits their `expires_at` in the feed to a time. It matches no row if another
 * process has published since the position was read. Sent twice, it changes nothing the second time, because a consumer
 * may have read the position, and the rows may have changed.
 */
const publishRows = (values: string[]) =>
  writeStatement(`UPDATE ended SET position = ?,
      published_until = CASE WHEN expires_at > ? THEN ? ELSE expires_at END
    WHERE kind = ? AND value IN (${placeholdersFor(values)})
      AND (position IS NULL OR position < ?)
      AND EXISTS (SELECT 1 FROM revocation_feed WHERE id = 1 AND position = ? AND publisher = ?)`);

/** Gives events a position, as `publishRows` does. A row never changes, so an event that has a position keeps it. */
const publishEvents = (ids: string[]) =>
  writeStatement(`UPDATE customer_event SET position = ?
    WHERE id IN (${placeholdersFor(ids)}) AND position IS NULL
      AND EXISTS (SELECT 1 FROM revocation_feed WHERE id = 1 AND position = ? AND publisher = ?)`);

const ROWS_PER_STEP = 10_000;
const END = new Date('9999-12-31T00:00:00Z');

const FIND_LAST_OF_STEP = selectStatement<[after: Date], NotNull<EntityRow<Ended, 'published_until'>>>(
  `SELECT published_until FROM ended WHERE published_until > ?
    ORDER BY published_until LIMIT 1 OFFSET ${ROWS_PER_STEP - 1}`,
);

const COUNT_STEP = selectStatement<[after: Date, last: Date], { entries: number }>(
  'SELECT COUNT(*) AS entries FROM ended WHERE published_until > ? AND published_until <= ?',
);

/** Subtracts the expired entries. Matches no row if another process has counted since. */
const CORRECT_COUNT = writeStatement<[surplus: number, count: number]>(
  'UPDATE revocation_feed SET entries = entries - ?, entries_count = entries_count + 1 WHERE id = 1 AND entries_count = ?',
);

/** What one transaction publishes. */
interface Publication {
  rows: WaitingRows;
  position: number;
  /** The highest position when the rows were read. */
  expectedPosition: number;
  /** The latest `expires_at` in the feed. */
  until: Date;
  publisher: string;
  /** Whether further rows wait. */
  hasBacklog: boolean;
}

/** The statements about the state of the feeds, and about the revocations and events that have or get positions. */
@Injectable()
export class FeedStore {
  private skipsLocked = true;

  constructor(private readonly database: Database) {}

  async readState(): Promise<StoredFeedState> {
    const [state] = await this.database.select(FIND_STATE, []);
    if (!state) throw new Error('the row of revocation_feed is missing');
    return state;
  }

  /**
   * Replaces the random id of the feed's history after a restore (protocol §7.6). Of several processes that know an id,
   * one replaces it. Without a known id, it is replaced in any case.
   */
  async renewHistory(known?: number): Promise<void> {
    const ofKnown = known !== undefined && { history: known };
    const history = randomInt(1, MAX_HISTORY_IDS);
    await this.database.manager.update(RevocationFeedState, { id: 1, ...ofKnown }, { history });
  }

  findWaiting(): Promise<WaitingRows> {
    return this.find(FIND_WAITING);
  }

  /** On a server without SKIP LOCKED, a locked row delays the others. */
  async findUnlocked(): Promise<WaitingRows> {
    if (!this.skipsLocked) return this.findWaiting();
    try {
      return await this.find(FIND_UNLOCKED);
    } catch (error) {
      if (error instanceof ServiceUnavailableException) throw error;
      const rows = await this.findWaiting();
      this.skipsLocked = false;
      return rows;
    }
  }

  async countWaiting(): Promise<number> {
    const [row] = await this.database.select(COUNT_WAITING, []);
    return Number(row?.waiting);
  }

  /** @returns false if another process has published since the rows were read */
  async publish({ rows, position, expectedPosition, until, publisher, hasBacklog }: Publication): Promise<boolean> {
    const { revocations, events } = rows;
    const writes = [...new Set(revocations.map((row) => row.kind))].map((kind): BoundWrite => {
      const values = valueList(revocations.filter((row) => row.kind === kind).map(({ value }) => value));
      const parameters = [position, until, until, kind, ...values, position, position, publisher];
      return { statement: publishRows(values), parameters };
    });
    if (events.length > 0) {
      const ids = valueList(events.map(({ id }) => id));
      writes.push({ statement: publishEvents(ids), parameters: [position, ...ids, position, publisher] });
    }
    const raise = bindWrite(RAISE_POSITION, [position, publisher, hasBacklog, revocations.length, expectedPosition]);
    // not `transaction`, because slow transactions of requests must not delay a publication
    return (await this.database.execute(writesTogether(raise, ...writes), [])) === 1;
  }

  /**
   * Counts about 10,000 entries, so that it delays no publication.
   *
   * @param after the `expires_at` in the feed up to which entries were counted
   * @returns the number of entries, and up to which `expires_at` they are; `undefined` if there are no later ones
   */
  async countStep(after: Date): Promise<{ entries: number; last: Date | undefined }> {
    const [lastRow] = await this.database.select(FIND_LAST_OF_STEP, [after]);
    const last = lastRow && new Date(timeOf(lastRow.published_until));
    const [row] = await this.database.select(COUNT_STEP, [after, last ?? END]);
    return { entries: Number(row?.entries), last };
  }

  /** @param count the number of counts before this one */
  async correctCount(surplus: number, count: number): Promise<void> {
    await this.database.execute(CORRECT_COUNT, [surplus, count]);
  }

  private async find({ revocations, events }: Finders): Promise<WaitingRows> {
    return {
      revocations: await this.database.select(revocations, []),
      events: await this.database.select(events, []),
    };
  }
}
