import {
  type EntityRow,
  insertIgnoreStatement,
  selectStatement,
  writeStatement,
} from '../../platform/database/statement.js';
import { OneTimeCode } from './one-time-code.entity.js';

const OWNER = ['grant_type', 'client_id', 'organization_id', 'entity_id', 'generation', 'proof', 'content'] as const;

export const INSERT = insertIgnoreStatement({
  into: OneTimeCode,
  columns: ['id', 'code_hash', ...OWNER, 'guesses', 'guesses_until', 'expires_at'],
});

type Owner = [
  grantType: string,
  clientId: string,
  organizationId: string,
  entityId: string | null,
  generation: number | null,
  proof: string | null,
  content: string,
];

/** Replaces the code and keeps the guesses. `guesses` comes first, because MySQL reads columns that it has changed. */
export const REPLACE = writeStatement<
  [...Owner, now: Date, now: Date, end: Date, codeHash: string, end: Date, id: string]
>(
  `UPDATE one_time_code SET ${OWNER.map((column) => `${column} = ?`).join(', ')},
    guesses = CASE WHEN guesses_until <= ? THEN 0 ELSE guesses END,
    guesses_until = CASE WHEN guesses_until <= ? THEN ? ELSE guesses_until END,
    code_hash = ?, used_at = NULL, expires_at = ? WHERE id = ?`,
);

const FOUND = ['code_hash', ...OWNER] as const;

export type OneTimeCodeRow = EntityRow<OneTimeCode, (typeof FOUND)[number]>;

export const FIND = selectStatement<[id: string], OneTimeCodeRow>(
  `SELECT ${FOUND.join(', ')} FROM one_time_code WHERE id = ?`,
);

export const COUNT_GUESS = writeStatement<[id: string, limit: number, now: Date]>(
  'UPDATE one_time_code SET guesses = guesses + 1 WHERE id = ? AND guesses < ? AND used_at IS NULL AND expires_at > ?',
);

/** The right guess does not count, so that a person may redeem any number of codes. */
export const REDEEM = writeStatement<[usedAt: Date, id: string, codeHash: string, now: Date]>(
  `UPDATE one_time_code SET used_at = ?, guesses = CASE WHEN guesses > 0 THEN guesses - 1 ELSE 0 END
    WHERE id = ? AND code_hash = ? AND used_at IS NULL AND expires_at > ?`,
);

export const GIVE_BACK = writeStatement<[id: string, codeHash: string, usedAt: Date]>(
  'UPDATE one_time_code SET used_at = NULL WHERE id = ? AND code_hash = ? AND used_at = ?',
);

export const DELETE_OF_CUSTOMER = writeStatement<[entityId: string]>('DELETE FROM one_time_code WHERE entity_id = ?');

const EXPORTED = ['grant_type', 'client_id', 'organization_id', 'used_at', 'expires_at'] as const;

/** The bound of an export, and one more. */
export const EXPORT = selectStatement<[entityId: string], EntityRow<OneTimeCode, (typeof EXPORTED)[number]>>(
  `SELECT ${EXPORTED.join(', ')} FROM one_time_code WHERE entity_id = ? LIMIT 1001`,
);
