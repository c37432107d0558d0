/** The tokens of the agent in one row of MariaDB or MySQL. `pool` is a pool of `mysql2/promise`. */
export class TokenStore {
  constructor(pool) {
    this.pool = pool;
  }

  /** Once, with the tokens of a new sign-in. */
  async fill(tokens) {
    await this.pool.query('CREATE TABLE IF NOT EXISTS agent_session (id INT PRIMARY KEY, tokens TEXT NOT NULL)');
    await this.pool.query('REPLACE INTO agent_session VALUES (1, ?)', [JSON.stringify(tokens)]);
  }

  async read() {
    return parse(await this.pool.query('SELECT tokens FROM agent_session WHERE id = 1'));
  }

  /** Other replicas wait for the row until this transaction ends. They still can read the old tokens. */
  async update(change) {
    const connection = await this.pool.getConnection();
    try {
      await connection.beginTransaction();
      const current = parse(await connection.query('SELECT tokens FROM agent_session WHERE id = 1 FOR UPDATE'));
      const tokens = await change(current);
      await connection.query('UPDATE agent_session SET tokens = ? WHERE id = 1', [JSON.stringify(tokens)]);
      await connection.commit();
      connection.release();
      return tokens;
    } catch (error) {
      connection.destroy(); // ends the transaction, also if the connection was lost
      throw error;
    }
  }
}

function parse([[row]]) {
  if (!row) throw Object.assign(new Error('no agent token: a person must sign in first'), { error: 'no_sign_in' });
  return JSON.parse(row.tokens);
}
