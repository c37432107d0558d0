import type { Socket } from 'node:net';
import type { PoolConnection } from 'mysql2';
import { rememberIdleLimit } from './mysql-transaction.js';

/** Not the server's, which may have NO_BACKSLASH_ESCAPES or ANSI_QUOTES: then a value could change a statement. */
const SQL_MODE = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ONLY_FULL_GROUP_BY,ERROR_FOR_DIVISION_BY_ZERO';

/** MariaDB ends a transaction whose process is lost; MySQL has no such variable, see `sendTransaction`. */
const IDLE_LIMIT = 'idle_write_transaction_timeout = 10';

const SETTINGS = [
  // mysql2 writes the values of a transaction into its statements, with a backslash before each quote
  `sql_mode = '${SQL_MODE}'`,
  'TRANSACTION ISOLATION LEVEL READ COMMITTED',
  // on Galera and Group Replication, a read sees the commits of all nodes; other servers do not know the variables
  'wsrep_sync_wait = 3',
  "group_replication_consistency = 'BEFORE'",
  IDLE_LIMIT,
  'innodb_lock_wait_timeout = 2',
  "time_zone = '+00:00'",
];

const UNKNOWN_VARIABLE_ERRNO = 1193;

/** Configures the session of a new connection. A server may lack some of the variables. */
export function configureSession(connection: PoolConnection): void {
  for (const setting of SETTINGS)
    connection.query(`SET SESSION ${setting}`, (error) => {
      if (!error) {
        if (setting === IDLE_LIMIT) rememberIdleLimit(connection);
      } else if (!error.fatal && !isUnknownVariable(error)) abort(connection, setting, error);
    });
}

/** Some servers have numbers of their own for an unknown variable. */
function isUnknownVariable({ errno, message }: { errno?: number | undefined; message: string }): boolean {
  return errno === UNKNOWN_VARIABLE_ERRNO || /unknown.* variable|variable.* (not exist|unknown)/i.test(message);
}

/**
 * Ends a connection that could read old rows without its setting. The statements that wait for the connection get this
 * error, which the log contains. With `connection.destroy()` they would get `write after end`.
 */
function abort(connection: PoolConnection, setting: string, cause: Error): void {
  const error = new Error(`SET SESSION ${setting}: ${cause.message}`, { cause });
  (connection as unknown as { stream: Socket }).stream.destroy(error);
}
