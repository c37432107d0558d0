/**
 * All private members of Node and of other packages that the service uses. Any version may change them, so
 * test/operations/private-members.spec.ts tests each of them; database-tls.e2e-spec.ts tests `_host`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { defaultMetadataStorage } from 'class-transformer/cjs/storage.js';
import type { Express } from 'express';
import type { Connection, Pool } from 'mysql2';
import type { DataSource } from 'typeorm';

/** A connection of Node's HTTP server. Node has had both fields since version 0.x. */
type HttpSocket = Socket & {
  _httpMessage?: (ServerResponse & { req: IncomingMessage }) | null;
  parser?: { incoming: IncomingMessage | null } | null;
};

/** The oldest response of a connection that is not finished. */
export function oldestResponse(socket: Socket): (ServerResponse & { req: IncomingMessage }) | undefined {
  return (socket as HttpSocket)._httpMessage ?? undefined;
}

/** The request of a connection whose body is being read, or the last one that was read. */
export function incomingRequest(socket: Socket): IncomingMessage | undefined {
  return (socket as HttpSocket).parser?.incoming ?? undefined;
}

/** Sets what Node does with a connection after a response with `Connection: close`. */
export function onLastResponse(socket: Socket, end: () => void): void {
  socket.destroySoon = end;
}

/** A route in Express' router. */
export interface RouteLayer {
  /** Truthy if the path matches; throws if its percent-encoding is invalid. */
  match(path: string): unknown;
  route?: { methods: Record<string, boolean | undefined> };
}

/** The routes and middlewares of an application, in their order. */
export function routeLayers(application: Express): RouteLayer[] {
  return (application as unknown as { router: { stack: RouteLayer[] } }).router.stack;
}

/** The pool of TypeORM's driver for MySQL. */
export function mysqlPool({ driver }: DataSource): Pool {
  return (driver as unknown as { pool: Pool }).pool;
}

interface PoolState {
  config: { connectionLimit: number };
  _allConnections: { length: number };
  _freeConnections: { length: number };
  _connectionQueue: { length: number };
}

/** The numbers of connections of a pool of mysql2, and of the statements that wait for one. */
export function poolState(pool: Pool): { limit: number; inUse: number; idle: number; waiting: number } {
  const { config, _allConnections, _freeConnections, _connectionQueue } = pool as unknown as PoolState;
  const idle = _freeConnections.length;
  const inUse = _allConnections.length - idle;
  return { limit: config.connectionLimit, inUse, idle, waiting: _connectionQueue.length };
}

/** The socket of a connection of mysql2. */
export function mysqlSocket(connection: Connection): Socket {
  return (connection as unknown as { stream: Socket }).stream;
}

/** Sets the host that Node verifies in a certificate if the caller names none. A DNS lookup sets it otherwise. */
export function setVerifiedHost(socket: Socket, host: string): Socket {
  return Object.assign(socket, { _host: host });
}

/** The connection of TypeORM's driver for SQLite. */
export function sqliteConnection<Connection>({ driver }: DataSource): Connection {
  return (driver as unknown as { databaseConnection: Connection }).databaseConnection;
}

/** What class-transformer's decorators have declared, such as the class of `@Type`. */
export const transformerMetadata = defaultMetadataStorage;
