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
  OR EXISTS (SELECT 1 FROM customer WHERE entity_id = ? AND generation > ?))`;
export const ENDED = `SELECT ${HAS_ENDED} AS ended`;
export const NEW_BROWSER = 'INSERT INTO browser (browser_id, secret_hash, version) VALUES (?, ?, 0)';

/** The parameters of REVOKED. @param {any} claims */
export const revocationOf = ({ jti, family = jti, client_id, iat }) => [jti, family, client_id, new Date(iat * 1000)];

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
 * Sends statements one after another in a transaction, which is rolled back unless the first one changes one row.
 *
 * @param {import('node:http').ServerResponse} response @param {[sql: string, parameters: any[]][]} statements
 * @param {() => void} then
 */
export function executeTransaction(response, statements, then) {
  pool.getConnection((error, connection) => {
    if (error) return void response.writeHead(500).end();
    const all = [['START TRANSACTION', []], ...statements, ['COMMIT', []]];
    let sent = 0;
    const next = () => {
      const [sql, parameters] = /** @type {[string, any[]]} */ (all[sent]);
      connection.execute(sql, parameters, (failure, result) => {
        if (failure || (sent === 1 && /** @type {any} */ (result).affectedRows !== 1)) {
          console.error(failure ?? `no row was changed: ${sql}`);
          connection.destroy(); // rolls back
          return void response.writeHead(500).end();
        }
        sent += 1;
        if (sent < all.length) return next();
        connection.release();
        then();
      });
    };
    next();
  });
}
