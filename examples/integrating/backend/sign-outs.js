import { isTemporary, logError } from '../fetch-with-retries.js';
import { endToken } from './page-token.js';

const RETRY_MS = 5_000;
/** Longer than a request that began before the sign-out and gets its token afterwards. */
const ENDED_SIGN_IN_MS = 86_400_000;
const ID = 'VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL';
const TABLES = [
  `issued_token (id INT AUTO_INCREMENT PRIMARY KEY, sign_in ${ID}, token TEXT NOT NULL, expires_at_ms BIGINT NOT NULL,
    INDEX (sign_in), INDEX (expires_at_ms))`,
  `ended_sign_in (id ${ID} PRIMARY KEY, ended_at_ms BIGINT NOT NULL)`,
];

/**
 * The tokens of the sign-ins at your site, in MariaDB or MySQL, for all replicas. `pool` is a pool of `mysql2/promise`.
 * An outage of the service or a restart of a replica only delays a sign-out.
 */
export class SignOuts {
  #isWanted = false;
  #isRunning = false;

  constructor({ url, pool, onError = logError }) {
    this.url = url;
    this.pool = pool;
    this.onError = onError;
  }

  /** Call this once in each replica. Every 5 s it finishes the sign-outs that other replicas began. */
  async start() {
    for (const table of TABLES) await this.pool.query(`CREATE TABLE IF NOT EXISTS ${table}`);
    setInterval(() => this.#finish(), RETRY_MS).unref();
  }

  /**
   * Stores a token of a sign-in. Call this before you hand out the token. Resolves to false if the sign-in has ended: do
   * not hand out the token then, it is ended too.
   */
  async record(signIn, token, expiresAtMs) {
    const row = [signIn, token, expiresAtMs];
    await this.pool.query('INSERT INTO issued_token (sign_in, token, expires_at_ms) VALUES (?, ?, ?)', row);
    // after the INSERT: a sign-out that this statement does not see finds the token
    const [ended] = await this.pool.query('SELECT 1 FROM ended_sign_in WHERE id = ?', [signIn]);
    if (ended.length > 0) this.#finish();
    return ended.length === 0;
  }

  /** The sign-out does not end this token. */
  async keep(signIn, token) {
    await this.pool.query('DELETE FROM issued_token WHERE sign_in = ? AND token = ?', [signIn, token]);
  }

  /** Ends all tokens of a sign-in, also one that arrives later, when its user signs out on one device. */
  async endSignIn(signIn) {
    await this.pool.query('INSERT IGNORE INTO ended_sign_in VALUES (?, ?)', [signIn, Date.now()]);
    this.#finish();
  }

  /** One round after the other. A sign-out during a round starts the next one. */
  async #finish() {
    this.#isWanted = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#isWanted) {
      this.#isWanted = false;
      await this.#finishRound();
    }
    this.#isRunning = false;
  }

  async #finishRound() {
    try {
      await this.pool.query('DELETE FROM issued_token WHERE expires_at_ms < ?', [Date.now()]);
      const ended = 'SELECT id, token FROM issued_token WHERE sign_in IN (SELECT id FROM ended_sign_in)';
      const [rows] = await this.pool.query(ended);
      for (const row of rows) await this.#end(row);
      const old = 'ended_at_ms < ? AND id NOT IN (SELECT sign_in FROM issued_token)';
      await this.pool.query(`DELETE FROM ended_sign_in WHERE ${old}`, [Date.now() - ENDED_SIGN_IN_MS]);
    } catch (error) {
      this.onError(error); // of the database; the next round repeats it
    }
  }

  async #end({ id, token }) {
    try {
      await endToken(this, token);
    } catch (error) {
      this.onError(Object.assign(error, { message: `row ${id} of issued_token: ${error.message}` }));
      if (isTemporary(error)) return; // the row stays for the next round
    }
    await this.pool.query('DELETE FROM issued_token WHERE id = ?', [id]);
  }
}
