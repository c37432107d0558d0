// @ts-check
/** Statements that decide whether a customer token has ended, in processor time of the process and of the database. */
import { VALID, validityOf } from '../floor/database.js';
import { customer } from '../site.js';

export const CUSTOMER_COUNT = 50_000;
const ENDED_COUNT = 100_000;

const NO_CUSTOMER = `NOT EXISTS (
  SELECT 1 FROM customer WHERE entity_id = ? AND generation = ? AND erased_at IS NULL)`;
const NO_SESSION = 'NOT EXISTS (SELECT 1 FROM session WHERE id = ? AND epoch = ?)';
const NO_CLIENT = "EXISTS (SELECT 1 FROM ended WHERE kind = 'client' AND value = ? AND issued_before >= ?)";

/** The parameters of the three conditions. @param {any} claims */
const conditionsOf = ({ sid, ep, client_id, iat, sub, gen }) => [sub, gen, sid, ep, client_id, new Date(iat * 1000)];

/** @typedef {{ sql: string, parametersOf: (claims: any) => any[] }} MeasuredStatement */

/** @type {Record<string, MeasuredStatement>} */
export const STATEMENTS = {
  'SELECT without a table': { sql: 'SELECT 0 AS ended', parametersOf: () => [] },
  'joins of the rows by their keys: the floor': { sql: VALID, parametersOf: validityOf },
  'one EXISTS for each condition': {
    sql: `SELECT (${NO_CUSTOMER} OR ${NO_SESSION} OR ${NO_CLIENT}) AS ended`,
    parametersOf: conditionsOf,
  },
  'UNION ALL of the conditions': {
    sql: [NO_CUSTOMER, NO_SESSION, NO_CLIENT]
      .map((condition) => `SELECT 1 AS ended FROM DUAL WHERE ${condition}`)
      .join(' UNION ALL '),
    parametersOf: conditionsOf,
  },
};

/** Adds entries that end none of the measured tokens. @param {import('mysql2/promise').Connection} connection */
export async function seedEnded(connection) {
  await connection.query(`
    INSERT INTO ended (kind, value, number, reason, issued_before, expires_at, audience)
    SELECT IF(seq % 2, 'token', 'session'), UUID(), 1, 'revoked', '9999-12-31', NOW(3) + INTERVAL 1 DAY, 'customer-api'
    FROM seq_1_to_${ENDED_COUNT}`);
}

/** The claims of the n-th token. @param {number} n */
export function claimsOf(n) {
  const { entityId, session } = customer(1 + ((n * 49) % CUSTOMER_COUNT));
  return { client_id: 'site', iat: 1, sub: entityId, gen: 0, sid: session, ep: 0 };
}
