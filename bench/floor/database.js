// @ts-check
/** The pool of connections of the floor, and the condition under which a token has ended. */
import mysql from 'mysql2';

const { DATABASE_URL = '' } = process.env;
const { hostname, port, username, password, pathname } = new URL(DATABASE_URL);
const pool = mysql.createPool({
  host: hostname,
  port: Number(port),
  user: username,
  password,
  database: pathname.slice(1),
  timezone: 'Z',
  connectionLimit: 10,
});
pool.on('connection', (connection) => connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED'));

/** Each kind has a SELECT of its own, because the database then reads one row by its key (bench/parts/statements.js). */
export const REVOKED = `(
  EXISTS (SELECT 1 FROM revocation WHERE kind = 'jti' AND value = ?)
  OR EXISTS (SELECT 1 FROM revocation WHERE kind = 'family' AND value = ?)
  OR EXISTS (SELECT 1 FROM revocation WHERE kind = 'client' AND value = ? AND issued_before >= ?))`;
/** A customer token has ended. */
export const HAS_ENDED = `(${REVOKED}
  OR EXISTS (SELECT 1 FROM customer_identity WHERE entity_id = ? AND generation > ?))`;
export const ENDED = `SELECT ${HAS_ENDED} AS ended`;

/** The parameters of REVOKED. @param {any} claims */
export const revocationOf = ({ jti, client_id, iat }) => [jti, jti, client_id, new Date(iat * 1000)];

/** The parameters of HAS_ENDED. @param {any} claims */
export const endOf = (claims) => [...revocationOf(claims), claims.sub, claims.gen];

/** @param {import('node:http').ServerResponse} response @param {string} sql @param {any[]} parameters @param {(result: any) => void} then */
export function execute(response, sql, parameters, then) {
  pool.execute(sql, parameters, (error, result) => {
    try {
      if (error) throw error;
      then(result);
    } catch (failure) {
      console.error(failure);
      response.writeHead(500).end();
    }
  });
}

/**
 * Sends statements at once.
 *
 * @param {import('node:http').ServerResponse} response @param {[sql: string, parameters: any[]][]} statements
 * @param {() => void} then
 */
export function executeAll(response, statements, then) {
  let pending = statements.length;
  for (const [sql, parameters] of statements)
    execute(response, sql, parameters, () => {
      pending -= 1;
      if (pending === 0) then();
    });
}

/**
 * Sends statements one after another in a transaction, and passes the result of the first.
 *
 * @param {import('node:http').ServerResponse} response @param {[sql: string, parameters: any[]][]} statements
 * @param {(result: any) => void} then
 */
export function executeTransaction(response, statements, then) {
  pool.getConnection((error, connection) => {
    if (error) return void response.writeHead(500).end();
    const all = [['START TRANSACTION', []], ...statements, ['COMMIT', []]];
    /** @type {any[]} */
    const results = [];
    const next = () => {
      const [sql, parameters] = /** @type {[string, any[]]} */ (all[results.length]);
      connection.execute(sql, parameters, (failure, result) => {
        if (failure) {
          console.error(failure);
          connection.destroy();
          return void response.writeHead(500).end();
        }
        results.push(result);
        if (results.length < all.length) return next();
        connection.release();
        then(results[1]);
      });
    };
    next();
  });
}
