import { randomInt } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database.js';
import { sqlFlag } from '../../platform/database/sql-dialect.js';
import {
  type EntityRow,
  selectStatement,
  type WriteStatement,
  writeStatement,
} from '../../platform/database/statement.js';
import { placeholdersFor } from '../../platform/database/value-list.js';
import type { Ended } from '../ended.entity.js';
import { RevocationFeedState } from './revocation-feed-state.entity.js';

/** A position of one history of the feed. Positions of different histories cannot be compared. */
export interface FeedPosition {
  history: number;
  position: number;
}

export function isSamePosition(one: FeedPosition, other: FeedPosition | undefined): boolean {
  return one.history === other?.history && one.position === other.position;
}

/** The column is a signed integer of 32 bits. */
const MAX_HISTORY_IDS = 2 ** 31 - 1;

/** The random id of the feed's history (protocol §7.6). A process or the operator renews it after a restore. */
@Injectable()
export class FeedHistory {
  constructor(private readonly database: Database) {}

  /** Of several processes that know an id, one replaces it. Without a known id, it is replaced in any case. */
  async renew(known?: number): Promise<void> {
    const ofKnown = known !== undefined && { history: known };
    const history = randomInt(1, MAX_HISTORY_IDS);
    await this.database.manager.update(RevocationFeedState, { id: 1, ...ofKnown }, { history });
  }
}

/** One lower read may come from a node of a cluster that does not have the last transactions yet. */
const MIN_LOWER_READ_COUNT = 2;

/** The state of the feed, as this process last read or wrote it. The event `change` reports new positions. */
export class FeedState extends EventEmitter<{ change: [] }> {
  /** The highest position; `undefined` before the first read. */
  highest: FeedPosition | undefined;
  /** Whether more revocations waited than one publication can have. */
  hasBacklog = true;
  private lowerReads = 0;

  /** Whether the last read had a lower position than before, in the same history. */
  get isLower(): boolean {
    return this.lowerReads > 0;
  }

  /** Whether several reads had a lower position: the database was restored from a backup. */
  get isRestored(): boolean {
    return this.lowerReads >= MIN_LOWER_READ_COUNT;
  }

  /** Compares a position that was read with the known one. Call `moveTo` afterwards, unless the position is lower. */
  compare({ history, position }: FeedPosition): void {
    const isLower = this.highest?.history === history && this.highest.position > position;
    this.lowerReads = isLower ? this.lowerReads + 1 : 0;
  }

  /** @returns whether the state has changed */
  moveTo({ history, position }: FeedPosition, hasBacklog: boolean): boolean {
    if (isSamePosition({ history, position }, this.highest) && hasBacklog === this.hasBacklog) return false;
    this.highest = { history, position };
    this.hasBacklog = hasBacklog;
    this.emit('change');
    return true;
  }
}

/** The most revocations that get one position. A page of the feed contains at least two positions. */
export const MAX_ROWS_PER_POSITION = 500;

const COLUMNS = ['history', 'position', 'publisher', 'has_backlog', 'entries', 'entries_count'] as const;

export interface StoredFeedState extends EntityRow<RevocationFeedState, (typeof COLUMNS)[number]> {
  /** 1 if committed revocations wait for their positions. */
  is_waiting: number;
  /** The time of the database. */
  read_at: Date | string;
}

export const FIND_STATE = selectStatement<[], StoredFeedState>({
  columns: [
    ...COLUMNS,
    ({ now }) => `${now} AS read_at`,
    `${sqlFlag('EXISTS (SELECT 1 FROM ended WHERE published_until IS NULL)')} AS is_waiting`,
  ],
  from: 'revocation_feed WHERE id = 1',
  batch: true,
});

/** A row that waits for a position. A row that was published before and changed since has its earlier position. */
export type WaitingRow = EntityRow<Ended, 'kind' | 'value' | 'position'>;

const SELECT_WAITING = `SELECT kind, value, position FROM ended WHERE published_until IS NULL
  LIMIT ${MAX_ROWS_PER_POSITION}`;

/** Reads committed rows, also those that another transaction has locked. */
export const FIND_WAITING = selectStatement<[], WaitingRow>(SELECT_WAITING);

/** A row that another transaction is changing is left out, and gets its position after that transaction. */
export const FIND_UNPUBLISHED = selectStatement<[], WaitingRow>(({ skipLocked }) => SELECT_WAITING + skipLocked);

/** Matches no row if another process has published since the position was read. */
export const RAISE_POSITION = writeStatement<
  [position: number, publisher: string, hasBacklog: boolean, rows: number, expectedPosition: number]
>(`UPDATE revocation_feed SET position = ?, publisher = ?, has_backlog = ?, entries = entries + ?
  WHERE id = 1 AND position = ?`);

/**
 * Gives rows of one kind a position, and limits their `expires_at` in the feed to a time. It matches no row if another
 * process has published since the position was read. Sent twice, it changes nothing the second time, because a consumer
 * may have read the position, and the rows may have changed.
 */
export const publishStatement = (values: string[]): WriteStatement =>
  writeStatement(`UPDATE ended SET position = ?,
      published_until = CASE WHEN expires_at > ? THEN ? ELSE expires_at END
    WHERE kind = ? AND value IN (${placeholdersFor(values)})
      AND (position IS NULL OR position < ?)
      AND EXISTS (SELECT 1 FROM revocation_feed WHERE id = 1 AND position = ? AND publisher = ?)`);
