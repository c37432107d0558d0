// @ts-nocheck
/** Sends the statements of the limit in the batches in which the service sends them. */
import { promisify } from 'node:util';
import mysql from 'mysql2';

const BATCH_SIZES = [1, 2, 4, 8, 16];
const MAX_BATCH_USES = 16;
const uri = process.env.DATABASE_URL.replace('mariadb:', 'mysql:');
const pool = mysql.createPool({ uri, timezone: 'Z', connectionLimit: 10 });
const getConnection = promisify(pool.getConnection.bind(pool));
pool.on('connection', (connection) => connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED'));

/** A SELECT of one row, whose uses in one tick are sent as one. */
export function batchedSelect(columns, from) {
  const texts = BATCH_SIZES.map((size) =>
    Array.from({ length: size }, (_, index) => `(SELECT ${index} AS position, ${columns} FROM ${from})`).join(
      ' UNION ALL ',
    ),
  );
  const sizeFor = (count) => BATCH_SIZES.find((size) => size >= count);
  return batched(sizeFor, async (uses, size) => {
    const padded = [...uses, ...Array(size - uses.length).fill(uses[0])];
    const results = [];
    for (const row of await execute(texts[BATCH_SIZES.indexOf(size)], padded.flat())) results[row.position] = row;
    return results;
  });
}

/** The INSERTs of a row of each table, in one transaction. Those of one tick are sent together. */
export function batchedInserts(tables) {
  const sizeFor = (count) => BATCH_SIZES.findLast((size) => size <= count);
  return batched(sizeFor, async (uses) => {
    const connection = await getConnection();
    try {
      await execute('START TRANSACTION', [], connection);
      for (const [index, table] of tables.entries()) {
        const rows = uses.map((use) => use[index]);
        const values = rows.map((row) => `(${row.map(() => '?')})`);
        await execute(`INSERT INTO ${table} VALUES ${values}`, rows.flat(), connection);
      }
      await execute('COMMIT', [], connection);
    } catch (error) {
      connection.destroy(); // rolls back
      throw error;
    }
    connection.release();
    return uses;
  });
}

/** Calls `send` once for up to 16 uses of one tick. */
function batched(sizeFor, send) {
  let waiting = [];
  const sendTogether = async (uses, size) => {
    try {
      const results = await send(
        uses.map(({ parameters }) => parameters),
        size,
      );
      for (const [index, { resolve }] of uses.entries()) resolve(results[index]);
    } catch (error) {
      for (const { reject } of uses) reject(error);
    }
  };
  const endTick = () => {
    const all = waiting;
    waiting = [];
    while (all.length > 0) {
      const size = sizeFor(Math.min(all.length, MAX_BATCH_USES));
      void sendTogether(all.splice(0, size), size);
    }
  };
  return (parameters) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(endTick);
      waiting.push({ parameters, resolve, reject });
    });
}

/** Rows, or the result of a change. The promises of mysql2 cost more: they record a stack for each statement. */
export function execute(sql, parameters, connection = pool) {
  return new Promise((resolve, reject) => {
    connection.execute(sql, parameters, (error, result) => (error ? reject(error) : resolve(result)));
  });
}
