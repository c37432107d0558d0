import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Request } from 'express';
import { type BrokenRequestBody, type HttpSocket, refuseBrokenRequest } from './broken-request.js';
import { asCurrentRequest, type FinishedRequest, type RequestRecord, requestIdOf } from './current-request.js';
import { routeOf, type Surface, targetOn } from './surfaces.js';

/** What one connection may cost before a request is understood. */
const LIMITS: ServerOptions = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  keepAliveTimeout: 65_000, // longer than the 60 s after which load balancers drop an idle connection
  connectionsCheckingInterval: 1_000,
  requireHostHeader: false, // node's own refusal has no body; ours is below
};
const MAX_CONNECTIONS = 10_000;
const DRAIN_INTERVAL = 50;
const LONGEST_DRAIN = 5_000;
/** Milliseconds in which the first bytes of a connection should be here. */
const LONGEST_SILENCE = 1_000;

/** Where a caller left before the answer was written; known from nginx. */
const CLIENT_CLOSED_REQUEST = 499;

declare module 'node:http' {
  interface IncomingMessage {
    /** What `X-Request-Id`, the log and an error's `request_id` call this request. */
    id: string;
  }
}

/** Who is told of each request, when it begins and when it is over; of bytes that are no request, only the latter. */
export interface RequestObserver {
  begun(record: RequestRecord, request: IncomingMessage): void;
  finished(request: FinishedRequest): void;
}

/** What a listener's owner adds: an answer before the application serves, the body of a refusal, an account of it all. */
export interface ListenerHooks {
  starting: RequestListener;
  brokenRequest: BrokenRequestBody;
  observer: RequestObserver;
}

/** One of the two addresses of the service. Until the application serves, it answers with `starting`. */
export class Listener {
  private readonly server: Server;
  /** When each connection was opened. */
  private readonly connections = new Map<Socket, number>();
  private closing = false;
  private handle: RequestListener;

  constructor(
    private readonly surface: Surface,
    private readonly hooks: ListenerHooks,
  ) {
    this.handle = hooks.starting;
    const serve: RequestListener = (request, response) => this.begin(request, response);
    this.server = createServer(LIMITS, serve);
    this.server.on('checkExpectation', serve); // node's own refusal has no body; RFC 9110 lets us ignore what it says
    this.server.on('connect', (_request, socket: HttpSocket) => this.refuseTunnel(socket));
    this.server.maxConnections = MAX_CONNECTIONS;
    this.server.on('connection', (socket) => {
      this.connections.set(socket, performance.now());
      socket.once('close', () => this.connections.delete(socket));
    });
    this.server.on('clientError', (error: NodeJS.ErrnoException, socket: HttpSocket) => this.refuse(error, socket));
  }

  /** Binds the address; rejects with the system's error, such as EADDRINUSE. */
  async listen(port: number, host?: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ port, ...(host && { host }) }, () => resolve(void this.server.off('error', reject)));
    });
  }

  serve(application: (request: IncomingMessage, response: never) => void): void {
    this.handle = application as RequestListener;
  }

  /** The port in use: the kernel's choice where 0 was asked for. */
  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** From now on each answer asks its caller to come by another connection. */
  announceClose(): void {
    this.closing = true;
  }

  /** Accepts nothing more, lets what has begun be answered, and cuts what is left after 5 s. */
  async close(): Promise<void> {
    if (!this.server.listening) return;
    this.announceClose();
    const closed = new Promise((resolve) => this.server.close(resolve));
    // a connection that is kept alive turns idle when its answer is done, which close() saw only once
    const idle = setInterval(() => this.closeIdle(), DRAIN_INTERVAL);
    const cut = setTimeout(() => this.server.closeAllConnections(), LONGEST_DRAIN);
    await closed;
    clearInterval(idle);
    clearTimeout(cut);
  }

  private begin(request: IncomingMessage, response: ServerResponse): void {
    // RFC 9112 section 3.2
    if (request.headers.host === undefined && request.httpVersion === '1.1') {
      return this.refuse(new Error('no Host'), request.socket);
    }
    const begun = performance.now();
    request.id = requestIdOf(request);
    const record = new ArrivedRequest(this.surface, request);
    this.hooks.observer.begun(record, request);
    response.once('close', () => {
      const route = routeOf((request as Request).route?.path);
      const status = response.writableFinished ? response.statusCode : CLIENT_CLOSED_REQUEST;
      this.hooks.observer.finished(Object.assign(record, { route, status, milliseconds: performance.now() - begun }));
    });
    if (this.closing) response.setHeader('Connection', 'close');
    request.url = targetOn(this.surface, request.url ?? '/');
    asCurrentRequest(record, () => this.handle(request, response));
  }

  /** Without this, node closes the connection of a CONNECT and says nothing. It has let go of the socket by now. */
  private refuseTunnel(socket: HttpSocket): void {
    socket.on('error', () => socket.destroy());
    socket.once('finish', () => socket.destroy());
    socket.resume();
    this.refuse(new Error('CONNECT'), socket);
  }

  private refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    const refused = refuseBrokenRequest(error, socket, this.hooks.brokenRequest);
    if (!refused) return;
    const reason = error.code ?? error.message;
    const about = { surface: this.surface, method: 'none', address: '', route: 'none', milliseconds: 0 };
    this.hooks.observer.finished({ ...about, ...refused, error: 'invalid_request', reason });
  }

  /** Those too that were opened in advance, as browsers and load balancers do: node takes them for requests. */
  private closeIdle(): void {
    this.server.closeIdleConnections();
    const silent = performance.now() - LONGEST_SILENCE;
    for (const [socket, opened] of this.connections) if (socket.bytesRead === 0 && opened < silent) socket.destroy();
  }
}

/** A class, since to V8 each literal with a getter is of a shape of its own: they cost a request 40 µs, and much memory. */
class ArrivedRequest implements RequestRecord {
  readonly id: string;
  readonly method: string;
  databaseSince: number | undefined = undefined;

  constructor(
    readonly surface: Surface,
    private readonly request: IncomingMessage,
  ) {
    this.id = request.id;
    this.method = request.method ?? '';
  }

  /** Asked for by few, and not for nothing. */
  get address(): string {
    return (this.request as Request).ip ?? '';
  }
}
