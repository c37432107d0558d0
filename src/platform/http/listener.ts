import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { RequestContext, requestContext } from '../request-context/request-context.js';
import type { Telemetry } from '../telemetry.js';
import {
  type BrokenRequest,
  brokenRequestHeaders,
  brokenRequestOf,
  brokenRequestResponse,
  Connection,
  headViolation,
  MAX_HEADER_LINES,
  routedTarget,
} from './connection.js';
import type { ListenerName } from './listener.decorators.js';

/** docs/operations.md, "Connections and memory", shows how the bounds fit into the memory of a pod. */
export interface ConnectionLimits {
  /** Beyond this number, each new connection is closed immediately. */
  maxConnections: number;
  /** From the first byte, or from the opening of the connection, to the end of the header. */
  headersTimeoutMs: number;
  /** From the same moment to the end of the body. */
  requestTimeoutMs: number;
  /** From a response to the next request. By default KEEP_ALIVE_SECONDS. */
  keepAliveTimeoutMs: number;
  /** How long a connection may transfer nothing while a request is under way. */
  silenceTimeoutMs: number;
  /** How often `headersTimeoutMs` and `requestTimeoutMs` are checked. */
  checkIntervalMs: number;
}

export interface ListenerHooks {
  starting: RequestListener;
  /** For bytes that never became a request, and so have no controller. */
  brokenRequest(status: number, requestId: string): string;
  telemetry: Telemetry;
}

const MAX_HEADER_BYTES = 16 * 1024;
const MAX_DRAIN_MS = 5_000;

/** The status in log and metrics when the client left before the response was written; nginx uses the same. */
const CLIENT_CLOSED_REQUEST_STATUS = 499;

/** Until `serve` is called, the listener responds with `starting`. The public port opens only then. */
export class Listener {
  private readonly server: Server;
  private readonly connections = new WeakMap<Socket, Connection>();
  private closing = false;
  private handle: RequestListener;

  constructor(
    private readonly name: ListenerName,
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
      // close() closed the connections that were idle then; this one may be idle now. Before close(), a client may just
      // have sent a request on an idle connection
      if (!this.server.listening) this.server.closeIdleConnections();
    };
    if (!connection?.begin(request, response, finish)) return;
    const violation = headViolation(request);
    if (violation !== undefined) {
      connection.end();
      return this.reject(response, context, brokenRequestOf(violation));
    }
    request.url = routedTarget(request.url ?? '');
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
      const unknown = { method: 'none', route: 'none', milliseconds: 0 };
      const facts = { listener: this.name, id, status, error: 'invalid_request', reason };
      this.hooks.telemetry.requestFinished({ ...unknown, ...facts });
      return brokenRequestResponse(status, id, this.hooks.brokenRequest(status, id));
    });
  }
}

function serverOptions(limits: ConnectionLimits): ServerOptions {
  return {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    highWaterMark: 16 * 1024, // of what no handler has read yet; the default of node 20
    requireHostHeader: false, // node's own error response has no body; `headViolation` has the rule
  };
}
