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

/** Finds a row if a customer token has not ended. It joins rows by their keys (bench/parts/statements.js). */
export const VALID = `
  SELECT 1 AS is_valid FROM session
  LEFT JOIN ended AS of_client ON of_client.kind = 'client' AND of_client.value = ? AND of_client.issued_before >= ?
  WHERE session.id = ? AND session.epoch = ? AND of_client.kind IS NULL`;
/** Joins what can end the token of an agent. */
export const AGENT = `
  JOIN agent_session ON agent_session.id = ? AND agent_session.epoch = ?
  LEFT JOIN ended AS of_client ON of_client.kind = 'client' AND of_client.value = ? AND of_client.issued_before >= ?`;
export const AGENT_IS_VALID = 'of_client.kind IS NULL';
/** The first statement of a transaction about the sessions of a customer. */
export const WRITE_CUSTOMER = `UPDATE customer SET version = version + 1, seen_day = ?
  WHERE entity_id = ? AND generation = ? AND erased_at IS NULL`;
export const NEW_BROWSER = 'INSERT INTO browser (browser_id, secret_hash, version) VALUES (?, ?, 0)';

/** The parameters of VALID. @param {any} claims */
export const validityOf = ({ sid, ep, client_id, iat }) => [client_id, new Date(iat * 1000), sid, ep];

/** The parameters of AGENT. @param {any} claims */
export const agentOf = ({ sid, ep, client_id, iat }) => [sid, ep, client_id, new Date(iat * 1000)];

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
 * Sends statements one after another in a transaction, which is rolled back if one of them fails its check. By default, a
 * statement must change a row.
 *
 * @typedef {[sql: string, parameters: any[], isGood?: (result: any) => boolean]} Step
 * @param {import('node:http').ServerResponse} response @param {Step[]} steps @param {() => void} then
 */
export function executeTransaction(response, steps, then) {
  pool.getConnection((error, connection) => {
    if (error) return void response.writeHead(500).end();
    /** @type {Step[]} */
    const all = [['START TRANSACTION', [], () => true], ...steps, ['COMMIT', [], () => true]];
    let sent = 0;
    const next = () => {
      const [sql, parameters, isGood = changesRows] = /** @type {Step} */ (all[sent]);
      connection.execute(sql, parameters, (failure, result) => {
        if (failure || !isGood(result)) {
          console.error(failure ?? `another result: ${sql}`);
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

/** @param {any} result */
const changesRows = ({ affectedRows }) => affectedRows > 0;
