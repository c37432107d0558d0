import type { EndedCondition } from '../access-token/ended-statement.js';
import type { RevocableClaims, TokenLineage } from '../access-token/token-lineage.js';
import { TOKEN_DAY, valueOfCustomer } from '../identity/customer-statements.js';
import type { SqlValue } from '../platform/database/sql-dialect.js';
import {
  type EntityRow,
  insertStatement,
  selectStatement,
  type WriteStatement,
  writeStatement,
} from '../platform/database/statement.js';
import { OneTimeCode } from './one-time-code.entity.js';

/** The origin of a code, stored as JSON in the column `made_with`. */
export interface StoredOrigin {
  /** The `jti` of the bearer that created the code. */
  jti: string;
  lineage: TokenLineage;
  /** Seconds since 1970. */
  issued_at: number;
}

/** A code that matches its proof. */
export interface RedeemableCode {
  /** The customer or agent. */
  subject: string;
  organizationId: string;
  clientId: string;
  scope: string | null;
  /** The group of the customer of a transfer token; the empty string if there is none. */
  groupId: string;
  /** The lineage of the token that the code gives. */
  lineage: TokenLineage;
  /** When access was granted, in milliseconds since 1970. */
  grantedAt: number;
  hasChallenge: boolean;
}

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

export type CodeRow = EntityRow<OneTimeCode, Column> & {
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
 * The first of parallel attempts changes the row, unless the code has `ended`. `consumed_by = ?` lets the attempt send
 * its statement again if the response was lost.
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

/** The code as claims that the denylist can check, because a code ends with its origin. */
export function revocableClaims({ kind, subject: sub, client_id, made_with }: CodeRow): RevocableClaims {
  const { jti, lineage, issued_at: iat }: StoredOrigin = JSON.parse(made_with);
  return { jti, sub, client_id, iat, aud: kind === 'transfer' ? 'customer-api' : 'agent-api', ...lineage };
}

export function redeemableCode(row: CodeRow): RedeemableCode {
  const { subject, organization_id: organizationId, client_id: clientId, scope } = row;
  const { lineage, issued_at }: StoredOrigin = JSON.parse(row.made_with);
  return {
    ...{ subject, organizationId, clientId, scope, groupId: row.group_id ?? '', lineage },
    ...{ grantedAt: issued_at * 1000, hasChallenge: row.code_challenge !== null },
  };
}
