// @ts-check
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { buildIfStale } from '../scripts/build.js';
import { startMariadb } from '../scripts/mariadb.js';
import { SERVICE, startServer } from './server.js';
import { environmentOf } from './site.js';

/**
 * @typedef {object} Setup
 * @property {import('../scripts/mariadb.js').MariadbServer} database
 * @property {import('mysql2/promise').Connection} connection to the database
 * @property {() => number} pid of the database's process
 * @property {ReturnType<typeof environmentOf>} environment of the servers
 * @property {(program: string[], more?: NodeJS.ProcessEnv) => Promise<import('./server.js').Server>} start
 */

/**
 * Runs a benchmark with the built service and a private durable MariaDB that has its tables. Removes both afterwards.
 *
 * @template Result
 * @param {string} bufferPool size of InnoDB's buffer pool
 * @param {(setup: Setup) => Promise<Result>} work
 * @returns {Promise<Result>}
 */
export async function withSetup(bufferPool, work) {
  buildIfStale();
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const database = await startMariadb({ durable: true, bufferPool });
  /** @type {import('./server.js').Server[]} */
  const servers = [];
  try {
    const environment = environmentOf(folder, await database.createDatabase('bench'));
    const start = async (/** @type {string[]} */ program, /** @type {NodeJS.ProcessEnv} */ more = {}) => {
      const server = await startServer(program, { ...environment, ...more }, join(folder, `${servers.length}.log`));
      servers.push(server);
      return server;
    };
    await (await start(SERVICE)).stop(); // creates the tables
    const connection = await mysql.createConnection(database.url('bench'));
    const result = await work({ database, connection, pid: database.pid, environment, start });
    connection.destroy();
    return result;
  } finally {
    for (const server of servers) server.kill();
    await database.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
