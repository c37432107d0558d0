import type { EndedCondition } from '../access-token/ended-statement.js';
import { TOKEN_DAY, valueOfCustomer } from '../identity/customer-statements.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import {
  type EntityRow,
  insertStatement,
  selectStatement,
  type WriteStatement,
  writeStatement,
} from '../platform/database/statement.js';
import type { CodeOwner } from './code-origin.js';
import { OneTimeCode } from './one-time-code.entity.js';

const COLUMNS = [
  'kind',
  'client_id',
  'subject',
  'organization_id',
  'scope',
  'redirect_uri',
  'code_challenge',
  'made_with',
  'expires_at',
] as const;

const REDEMPTION_COLUMNS = ['consumed_by', 'consumed_network'] as const;

type Column = (typeof COLUMNS | typeof REDEMPTION_COLUMNS)[number];

export type CodeRow = EntityRow<OneTimeCode, Column> &
  CodeOwner & {
    /** Milliseconds since the redemption, by the clock of the database; `null` if the code is not redeemed. */
    consumed_for: number | null;
    /** The group of the customer of a transfer token; empty if the customer belongs to none. */
    group_id: string | null;
    /** The last day that is noted for a token of this customer (`TOKEN_DAY`). */
    token_day: number | null;
  };

export const FIND_CODE = selectStatement<[hash: string], CodeRow>({
  columns: [
    ...COLUMNS,
    ...REDEMPTION_COLUMNS,
    ({ millisecondsSince }) => `${millisecondsSince('consumed_at')} AS consumed_for`,
    `${valueOfCustomer('group_id', 'subject')} AS group_id`,
    `${valueOfCustomer(TOKEN_DAY, 'subject')} AS token_day`,
  ],
  from: 'one_time_code WHERE hash = ?',
  batch: true,
});

export const INSERT_CODE = insertStatement({ into: OneTimeCode, columns: ['hash', ...COLUMNS], batch: true });

type RedeemStatement = WriteStatement<
  [attempt: string, network: string | null, hash: string, now: Date, attempt: string, ...ended: SqlValue[]]
>;

const redeemStatements = new Map<EndedCondition, RedeemStatement>();

/**
 * The first of several parallel attempts changes the row. The others change none, because the database locks the row
 * for each UPDATE. `consumed_by = ?` lets the first attempt send its statement again if the response was lost.
 *
 * @param ended the condition under which the code has ended; the statement then changes no row
 */
export function redeemStatement(ended: EndedCondition): RedeemStatement {
  let statement = redeemStatements.get(ended);
  if (statement === undefined) {
    statement = writeStatement(
      ({ now }) => `UPDATE one_time_code
        SET consumed_at = COALESCE(consumed_at, ${now}), consumed_by = ?, consumed_network = ?
        WHERE hash = ? AND expires_at > ? AND (consumed_at IS NULL OR consumed_by = ?) AND NOT ${ended.text}`,
    );
    redeemStatements.set(ended, statement);
  }
  return statement;
}
