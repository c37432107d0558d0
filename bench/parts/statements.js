// @ts-check
/** Statements that decide whether a customer token has ended, in processor time of the process and of the database. */
import { randomUUID } from 'node:crypto';
import { ENDED, endOf } from '../floor/database.js';
import { customer } from '../site.js';

export const CUSTOMER_COUNT = 50_000;
const REVOCATION_COUNT = 100_000;

const CUSTOMER_ENDED = 'EXISTS (SELECT 1 FROM customer WHERE entity_id = ? AND generation > ?)';

/** @typedef {{ sql: string, parametersOf: (claims: any) => any[] }} MeasuredStatement */

/** @type {Record<string, MeasuredStatement>} */
export const STATEMENTS = {
  'SELECT without a table': { sql: 'SELECT 0 AS ended', parametersOf: () => [] },
  'one SELECT for each kind of revocation: the floor': { sql: ENDED, parametersOf: endOf },
  'one SELECT for all kinds, by OR': {
    sql: `SELECT (EXISTS (SELECT 1 FROM revocation WHERE (kind IN ('jti', 'family') AND value IN (?))
      OR (kind = 'client' AND value = ? AND issued_before >= ?)) OR ${CUSTOMER_ENDED}) AS ended`,
    parametersOf: ({ jti, client_id, iat, sub, gen }) => [jti, client_id, new Date(iat * 1000), sub, gen],
  },
  'one SELECT for all kinds, by pairs': {
    sql: `SELECT (EXISTS (SELECT 1 FROM revocation
      WHERE (kind, value) IN (('jti', ?), ('family', ?), ('client', ?)) AND issued_before >= ?)
      OR ${CUSTOMER_ENDED}) AS ended`,
    parametersOf: endOf,
  },
  'UNION ALL of the rows that end': {
    sql: `SELECT 1 AS ended FROM revocation WHERE kind = 'jti' AND value = ?
      UNION ALL SELECT 1 FROM revocation WHERE kind = 'family' AND value = ?
      UNION ALL SELECT 1 FROM revocation WHERE kind = 'client' AND value = ? AND issued_before >= ?
      UNION ALL SELECT 1 FROM customer WHERE entity_id = ? AND generation > ?`,
    parametersOf: endOf,
  },
};

/** Adds revocations that end none of the measured tokens. @param {import('mysql2/promise').Connection} connection */
export async function seedRevocations(connection) {
  await connection.query(`
    INSERT INTO revocation (kind, value, issued_before, expires_at)
    SELECT IF(seq % 2, 'jti', 'family'), UUID(), '9999-12-31', NOW(3) + INTERVAL 1 DAY
    FROM seq_1_to_${REVOCATION_COUNT}`);
}

/** The claims of the n-th token. @param {number} n */
export function claimsOf(n) {
  const { entityId } = customer(1 + ((n * 49) % CUSTOMER_COUNT));
  return { jti: randomUUID(), client_id: 'site', iat: 1, sub: entityId, gen: 0 };
}
