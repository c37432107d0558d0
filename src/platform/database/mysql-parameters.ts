import mysql, { type TypedParameterValue } from 'mysql2';
import type { SqlValue } from './sql-dialect.js';

/** Parameters of a prepared statement. mysql2 would send integers as doubles, which some servers reject or round. */
export function asSent(parameters: SqlValue[]): (SqlValue | TypedParameterValue)[] {
  return parameters.map((value) => (Number.isInteger(value) ? mysql.TypedParameter.LONGLONG(value as number) : value));
}
