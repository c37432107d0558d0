/**
 * All private members of Node and other packages that are used. Any version may change them. Then tests of the code
 * that uses them fail, or those of private-members.spec.ts and, for `_host`, database-tls.e2e-spec.ts.
 */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { defaultMetadataStorage } from 'class-transformer/cjs/storage.js';
import type { Connection, Pool, PoolOptions } from 'mysql2';
import type { DataSource } from 'typeorm';

export function mysqlPool({ driver }: DataSource): Pool {
  return (driver as unknown as { pool: Pool }).pool;
}

interface PoolState {
  config: { connectionLimit: number };
  _allConnections: { length: number };
  _freeConnections: { length: number };
  _connectionQueue: { length: number };
}

export function poolState(pool: Pool): { limit: number; inUse: number; idle: number; waiting: number } {
  const { config, _allConnections, _freeConnections, _connectionQueue } = pool as unknown as PoolState;
  const idle = _freeConnections.length;
  const inUse = _allConnections.length - idle;
  return { limit: config.connectionLimit, inUse, idle, waiting: _connectionQueue.length };
}

export function mysqlSocket(connection: Connection): Socket {
  return (connection as unknown as { stream: Socket }).stream;
}

/** The pool opens its next connections with these options. */
export function setPoolServer(
  pool: Pool,
  options: Pick<PoolOptions, 'host' | 'port' | 'user' | 'password' | 'stream'>,
): void {
  Object.assign((pool as unknown as { config: { connectionConfig: PoolOptions } }).config.connectionConfig, options);
}

interface MysqlCommand extends EventEmitter {
  onResult?: (error: Error | null, ...results: unknown[]) => void;
}

/** Calls `report` with each error of a command that the connection sends from now on. */
export function onCommandError(connection: Connection, report: (error: Error) => void): void {
  const commands = connection as unknown as { addCommand(command: MysqlCommand): MysqlCommand };
  const add = commands.addCommand;
  commands.addCommand = (command) => {
    const { onResult } = command;
    if (!onResult) command.once('error', report);
    else
      command.onResult = (error, ...results) => {
        if (error) report(error);
        onResult.call(command, error, ...results);
      };
    return add.call(connection, command);
  };
}

/** Sets the host that Node verifies in a certificate if the caller names none. A DNS lookup sets it otherwise. */
export function setVerifiedHost(socket: Socket, host: string): Socket {
  return Object.assign(socket, { _host: host });
}

export function sqliteConnection<Connection>({ driver }: DataSource): Connection {
  return (driver as unknown as { databaseConnection: Connection }).databaseConnection;
}

/** The context that a guard gets, for arguments of one's own. */
export { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';

/** The classes of `@Type`. */
export const transformerMetadata = defaultMetadataStorage;
