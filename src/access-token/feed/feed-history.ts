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

const NAME = 'revocation_feed_history' satisfies RecordedName;
/** The recorded values are signed integers of 32 bits. */
const MAX_HISTORY_IDS = 2 ** 31 - 1;

/** The id of the feed's history, for other SELECTs; `null` before the first process has created the id. */
export const HISTORY = `(SELECT value FROM recorded_value WHERE name = '${NAME}')`;

const INSERT = insertIgnoreStatement({ into: RecordedValue, columns: ['name', 'value'] });

const RENEW = writeStatement<[renewed: number, known: number]>(
  `UPDATE recorded_value SET value = ? WHERE name = '${NAME}' AND value = ?`,
);

const RENEW_ALWAYS = writeStatement<[renewed: number]>(`UPDATE recorded_value SET value = ? WHERE name = '${NAME}'`);

/**
 * The random id of the feed's history (protocol §7.6). Each cursor names the id. A new id lets each consumer read the
 * full list again. The id is new in a new database, and after a restore that a process or the operator has noticed.
 */
@Injectable()
export class FeedHistory {
  constructor(private readonly database: Database) {}

  /** Creates the id, if the database has none. */
  async create(): Promise<void> {
    await this.database.executeIdempotent(INSERT, [NAME, newId()]);
  }

  /** Replaces the known id. Of several processes that know it, one replaces the id. */
  async renew(known: number): Promise<void> {
    await this.database.executeIdempotent(RENEW, [newId(), known]);
  }

  /** Replaces the id without a comparison with the current one. */
  async renewAlways(): Promise<void> {
    await this.create();
    await this.database.executeIdempotent(RENEW_ALWAYS, [newId()]);
  }
}

function newId(): number {
  return randomInt(1, MAX_HISTORY_IDS);
}
