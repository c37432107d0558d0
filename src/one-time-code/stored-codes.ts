import { timeOf } from '../platform/database/sql-dialect.js';
import { type EntityRow, insertStatement, selectStatement, writeStatement } from '../platform/database/statement.js';
import { OneTimeCode } from './one-time-code.entity.js';

/** A code that matches its proof. */
export interface RedeemableCode {
  agentId: string;
  organizationId: string;
  clientId: string;
  /** Scopes separated by spaces. */
  scope: string;
  /** The generation of the agent when access was granted. */
  generation: number;
  /** When access was granted, in milliseconds since 1970. */
  grantedAt: number;
}

const COLUMNS = [
  'client_id',
  'agent_id',
  'organization_id',
  'scope',
  'redirect_uri',
  'code_challenge',
  'generation',
  'issued_at',
  'expires_at',
] as const;

const REDEMPTION_COLUMNS = ['consumed_by', 'consumed_network'] as const;

type Column = (typeof COLUMNS | typeof REDEMPTION_COLUMNS)[number];

export type CodeRow = EntityRow<OneTimeCode, Column> & {
  /** Milliseconds since the redemption, by the clock of the database; `null` if the code is not redeemed. */
  consumed_for: number | null;
};

export const FIND_CODE = selectStatement<[hash: string], CodeRow>({
  columns: [
    ...COLUMNS,
    ...REDEMPTION_COLUMNS,
    ({ millisecondsSince }) => `${millisecondsSince('consumed_at')} AS consumed_for`,
  ],
  from: 'one_time_code WHERE hash = ?',
  batch: true,
});

export const INSERT_CODE = insertStatement({ into: OneTimeCode, columns: ['hash', ...COLUMNS], batch: true });

/** The first of parallel attempts changes the row. */
export const REDEEM_CODE = writeStatement<
  [attempt: string, network: string | null, hash: string, now: Date, attempt: string]
>(
  ({ now }) => `UPDATE one_time_code
    SET consumed_at = COALESCE(consumed_at, ${now}), consumed_by = ?, consumed_network = ?
    WHERE hash = ? AND expires_at > ? AND (consumed_at IS NULL OR consumed_by = ?)`,
);

export function redeemableCode(row: CodeRow): RedeemableCode {
  const { agent_id: agentId, organization_id: organizationId, client_id: clientId, scope, generation } = row;
  return { agentId, organizationId, clientId, scope, generation, grantedAt: timeOf(row.issued_at) };
}
