import { randomInt } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database.js';
import { insertIgnoreStatement, writeStatement } from '../../platform/database/statement.js';
import { type RecordedName, RecordedValue } from '../recorded-values.js';

/** A position of one history of the feed. Positions of different histories cannot be compared. */
export interface FeedPosition {
  history: number;
  position: number;
}

export function isSamePosition(one: FeedPosition, other: FeedPosition | undefined): boolean {
  return one.history === other?.history && one.position === other.position;
}

const NAME = 'revocation_feed_history' satisfies RecordedName;
/** The recorded values are signed integers of 32 bits. */
const MAX_HISTORY_IDS = 2 ** 31 - 1;

/** The id of the feed's history, for other SELECTs; `null` before the first process has created the id. */
export const HISTORY = `(SELECT value FROM recorded_value WHERE name = '${NAME}')`;

const INSERT = insertIgnoreStatement({ into: RecordedValue, columns: ['name', 'value'] });

const RENEW = writeStatement<[renewed: number, known: number | null]>(
  `UPDATE recorded_value SET value = ? WHERE name = '${NAME}' AND value = COALESCE(?, value)`,
);

/** The random id of the feed's history (protocol §7.6). A process or the operator renews it after a restore. */
@Injectable()
export class FeedHistory {
  constructor(private readonly database: Database) {}

  async create(): Promise<void> {
    await this.database.executeIdempotent(INSERT, [NAME, newId()]);
  }

  /** Of several processes that know an id, one replaces it. */
  async renew(known: number | null): Promise<void> {
    await this.database.executeIdempotent(RENEW, [newId(), known]);
  }

  async renewAlways(): Promise<void> {
    await this.create();
    await this.renew(null);
  }
}

const newId = () => randomInt(1, MAX_HISTORY_IDS);
