import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect, Socket } from 'node:net';
import { Type } from 'class-transformer';
import express from 'express';
import mysql from 'mysql2';
import { DataSource } from 'typeorm';
import { afterEach, describe, expect, it, vi } from 'vitest';
import * as privateMembers from '../../src/platform/private-members.js';
import { listen } from '../support/listen.js';

const { oldestResponse, incomingRequest, onLastResponse, routeLayers } = privateMembers;

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

/** Sends bytes to an HTTP server that does not respond. Resolves to its first request. */
async function firstRequest(bytes: string): Promise<[request: IncomingMessage, response: ServerResponse]> {
  const server = createServer();
  servers.push(server);
  const { port } = new URL(await listen(server));
  const received = once(server, 'request');
  connect(Number(port), '127.0.0.1')
    .on('error', () => undefined)
    .write(bytes);
  return (await received) as [IncomingMessage, ServerResponse];
}

describe('a private member of Node', () => {
  it('is the oldest response of a connection', async () => {
    const [request, response] = await firstRequest(
      'GET /first HTTP/1.1\r\nHost: x\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\n\r\n',
    );
    const { socket } = request;
    expect(oldestResponse(socket)).toBe(response);
    expect(oldestResponse(socket)?.req).toBe(request);
    response.end();
    await vi.waitFor(() => expect(oldestResponse(socket)?.req.url).toBe('/second'));
    expect(oldestResponse(new Socket())).toBeUndefined();
  });

  it('is the request whose body is being read', async () => {
    const [request] = await firstRequest('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf');
    expect(incomingRequest(request.socket)).toBe(request);
    expect(incomingRequest(request.socket)?.complete).toBe(false);
    expect(incomingRequest(new Socket())).toBeUndefined();
  });

  it('is what Node calls after a response with Connection: close', async () => {
    const [request, response] = await firstRequest('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    const end = vi.fn(() => request.socket.destroy());
    onLastResponse(request.socket, end);
    response.setHeader('Connection', 'close').end();
    await vi.waitFor(() => expect(end).toHaveBeenCalledOnce());
  });
});

describe('a private member of a package', () => {
  it('is the list of the routes of Express, with their methods', () => {
    const application = express();
    application.route('/one/:id').get(() => undefined);
    const [layer] = routeLayers(application).filter(({ route }) => route);
    expect(layer?.match('/one/2')).toBeTruthy();
    expect(layer?.match('/two')).toBeFalsy();
    expect(layer?.route?.methods).toEqual({ get: true });
  });

  it('is the context of a guard of Nest', () => {
    const request = {};
    expect(new privateMembers.ExecutionContextHost([request]).switchToHttp().getRequest()).toBe(request);
  });

  it('is the state of a pool of mysql2', () => {
    const pool = mysql.createPool({ host: '127.0.0.1', port: 1, connectionLimit: 1 });
    expect(privateMembers.poolState(pool)).toEqual({ limit: 1, inUse: 0, idle: 0, waiting: 0 });
    pool.getConnection(() => undefined);
    pool.getConnection(() => undefined);
    expect(privateMembers.poolState(pool)).toEqual({ limit: 1, inUse: 1, idle: 0, waiting: 1 });
    pool.end(() => undefined);
  });

  it('is the socket of a connection of mysql2', () => {
    const stream = new Socket();
    const connection = mysql.createConnection({ stream });
    expect(privateMembers.mysqlSocket(connection)).toBe(stream);
    connection.destroy();
  });

  it('is the pool of the driver of TypeORM', async () => {
    const connection = { release: () => undefined };
    const pool = { getConnection: (done: (error: null, found: object) => void) => done(null, connection) };
    const dataSource = new DataSource({ type: 'mysql', driver: { createPool: () => pool } });
    await dataSource.initialize().catch(() => undefined); // the connection of the test cannot send a query
    expect(privateMembers.mysqlPool(dataSource)).toBe(pool);
  });

  it('is the connection of the driver of TypeORM to SQLite', async () => {
    const dataSource = new DataSource({
      type: 'better-sqlite3',
      driver: (await import('libsql')).default,
      database: ':memory:',
    });
    await dataSource.initialize();
    const connection = privateMembers.sqliteConnection<{ prepare(sql: string): { all(): unknown[] } }>(dataSource);
    expect(connection.prepare('SELECT 1 AS one').all()).toEqual([{ one: 1 }]);
    await dataSource.destroy();
  });

  it('is the class that @Type of class-transformer has declared', () => {
    class Inner {}
    class Outer {
      @Type(() => Inner)
      inner!: Inner;
    }
    const declared = privateMembers.transformerMetadata.findTypeMetadata(Outer, 'inner');
    expect(declared?.typeFunction()).toBe(Inner);
  });
});
