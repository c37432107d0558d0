import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Configuration } from '../configuration/configuration.js';
import { RequestContext, requestContext } from '../request-context/request-context.js';
import type { Telemetry } from '../telemetry.js';
import {
  type BrokenRequest,
  brokenRequestHeaders,
  brokenRequestOf,
  brokenRequestResponse,
  headViolation,
} from './broken-request.js';
import { Connection } from './connection.js';
import {
  type ConnectionLimits,
  MAX_CONNECTIONS,
  MAX_HEADER_LINES,
  serverOptions,
  TIMEOUTS,
} from './connection-limits.js';
import type { Port } from './surfaces.js';

export interface ListenerHooks {
  starting: RequestListener;
  /** For bytes that never became a request, and so have no controller. */
  brokenRequest(status: number, requestId: string): string;
  telemetry: Telemetry;
}

const MAX_DRAIN_MS = 5_000;

/** The status in log and metrics when the client left before the response was written; nginx uses the same. */
const CLIENT_CLOSED_REQUEST_STATUS = 499;

/** Until `serve` is called, the listener responds with `starting`. The public port opens only then. */
class Listener {
  private readonly server: Server;
  private readonly connections = new WeakMap<Socket, Connection>();
  private closing = false;
  private handle: RequestListener;

  constructor(
    private readonly name: Port,
    private readonly address: { port: number; host: string | undefined },
    private readonly hooks: ListenerHooks,
    limits: ConnectionLimits,
  ) {
    this.handle = hooks.starting;
    const receive: RequestListener = (request, response) => this.receive(request, response);
    this.server = createServer(serverOptions(limits), receive);
    this.server.maxConnections = limits.maxConnections;
    this.server.setTimeout(limits.silenceTimeoutMs);
    this.server.maxHeadersCount = MAX_HEADER_LINES + 1; // one more than is accepted, so that node 20 shows the excess
    // an unknown expectation may be ignored (RFC 9110 §10.1.1); node would respond to it without a body
    this.server.on('checkExpectation', receive);
    this.server.on('connection', (socket) => {
      // node keeps an address that was read once. A connection that was reset before has none
      if (socket.remoteAddress === undefined) return void socket.destroy();
      this.connections.set(socket, new Connection(socket));
    });
    this.server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      if (error.code === 'ECONNRESET') socket.destroy();
      else this.endBroken(socket, error.code ?? error.message);
    });
    // without this listener, node closes the connection of a CONNECT without a response
    this.server.on('connect', (_request, socket: Socket) => {
      socket.on('error', () => socket.destroy()); // node has removed its own listeners
      this.endBroken(socket, 'CONNECT');
    });
  }

  /** Binds the address; rejects with the system's error, such as EADDRINUSE, and names the variable of the port. */
  async listen(): Promise<void> {
    const { port, host } = this.address;
    const variable = this.name === 'public' ? 'PORT' : `${this.name.toUpperCase()}_PORT`;
    this.server.listen({ port, ...(host && { host }) });
    await once(this.server, 'listening').catch(({ message }: Error) => {
      throw new Error(`${variable}: ${message}`);
    });
  }

  serve(application: RequestListener): void {
    this.handle = application;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** From now on, each response has `Connection: close`. */
  announceClose(): void {
    this.closing = true;
  }

  /** Accepts no more connections, finishes the requests under way, and destroys the remaining connections after 5 s. */
  async close(): Promise<void> {
    if (!this.server.listening) return;
    this.announceClose();
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeIdleConnections();
    const cut = setTimeout(() => this.server.closeAllConnections(), MAX_DRAIN_MS);
    await closed;
    clearTimeout(cut);
  }

  private receive(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.connections.get(request.socket);
    const context = new RequestContext(this.name, request);
    const finish = () => {
      const status = response.writableFinished ? response.statusCode : CLIENT_CLOSED_REQUEST_STATUS;
      this.hooks.telemetry.requestFinished(context.finish(status));
      // close() closed the connections that were idle then; this one may be idle now
      if (this.closing) this.server.closeIdleConnections();
    };
    if (!connection?.begin(request, response, finish)) return;
    const violation = headViolation(request);
    if (violation !== undefined) {
      connection.end();
      return this.reject(response, context, brokenRequestOf(violation));
    }
    this.hooks.telemetry.requestReceived(context, request);
    if (this.closing) response.setHeader('Connection', 'close');
    requestContext.run(context, () => this.handle(request, response));
  }

  private reject(response: ServerResponse, context: RequestContext, { status, reason }: BrokenRequest): void {
    Object.assign(context, { error: 'invalid_request', reason });
    const text = this.hooks.brokenRequest(status, context.id);
    response.writeHead(status, brokenRequestHeaders(context.id, text)).end(text);
  }

  private endBroken(socket: Socket, reason: string): void {
    const broken = brokenRequestOf(reason);
    const { status } = broken;
    this.connections.get(socket)?.endBroken(broken, () => {
      const id = randomUUID();
      const about = { surface: this.name, method: 'none', route: 'none', milliseconds: 0 };
      this.hooks.telemetry.requestFinished({ ...about, id, status, error: 'invalid_request', reason });
      return brokenRequestResponse(status, id, this.hooks.brokenRequest(status, id));
    });
  }
}

/** The public port, the management port, and ADMIN_PORT, which takes routes over from the latter (protocol §1.5). */
export class Listeners {
  private readonly listeners: { public: Listener; management: Listener; admin?: Listener };

  constructor(
    { HOST: host, PORT, MANAGEMENT_PORT, ADMIN_PORT, KEEP_ALIVE_SECONDS }: Configuration,
    hooks: ListenerHooks,
    limits: Partial<ConnectionLimits> = {},
  ) {
    const defaults = { ...TIMEOUTS, keepAliveTimeoutMs: KEEP_ALIVE_SECONDS * 1_000 };
    const listenerOf = (name: Port, port: number) =>
      new Listener(name, { port, host }, hooks, { ...defaults, maxConnections: MAX_CONNECTIONS[name], ...limits });
    this.listeners = {
      public: listenerOf('public', PORT),
      management: listenerOf('management', MANAGEMENT_PORT),
      ...(ADMIN_PORT !== undefined && { admin: listenerOf('admin', ADMIN_PORT) }),
    };
  }

  async listenForManagement(): Promise<void> {
    const { management, admin } = this.listeners;
    for (const listener of [management, admin]) await listener?.listen();
  }

  async serve(application: RequestListener): Promise<void> {
    for (const listener of Object.values(this.listeners)) listener.serve(application);
    await this.listeners.public.listen();
  }

  announceClose(): void {
    this.listeners.public.announceClose();
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.listeners).map((listener) => listener.close()));
  }

  get ports(): { port: number; managementPort: number; adminPort?: number } {
    const { management, admin } = this.listeners;
    return {
      port: this.listeners.public.port,
      managementPort: management.port,
      ...(admin && { adminPort: admin.port }),
    };
  }
}
