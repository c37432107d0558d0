import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { noteArrival, noteConnection } from './arrival.js';
import { type Surface, targetOn } from './surfaces.js';

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

/** The JSON body for bytes that never became a request, and so have no controller to answer them. */
export type BrokenRequestBody = (status: number, requestId: string) => string;

/** What node keeps of the answer under way on a socket. */
type HttpSocket = Socket & { _httpMessage?: { _headerSent?: boolean } };

/** One of the two addresses of the service. Until the application serves, it answers with `starting`. */
export class Listener {
  private readonly server: Server;
  /** When each connection was opened. */
  private readonly connections = new Map<Socket, number>();
  private closing = false;
  private handle: RequestListener;

  constructor(surface: Surface, starting: RequestListener, brokenRequest: BrokenRequestBody) {
    this.handle = starting;
    const serve: RequestListener = (request, response) => {
      if (request.headers.host === undefined && request.httpVersion === '1.1') {
        return refuseBrokenRequest(new Error('no Host'), request.socket, brokenRequest); // RFC 9112 section 3.2
      }
      noteArrival(request);
      if (this.closing) response.setHeader('Connection', 'close');
      request.url = targetOn(surface, request.url ?? '/');
      this.handle(request, response);
    };
    this.server = createServer(LIMITS, serve);
    this.server.on('checkExpectation', serve); // node's own refusal has no body; RFC 9110 lets us ignore what it says
    this.server.maxConnections = MAX_CONNECTIONS;
    this.server.on('connection', (socket) => {
      noteConnection(socket);
      this.connections.set(socket, performance.now());
      socket.once('close', () => this.connections.delete(socket));
    });
    this.server.on('clientError', (error: NodeJS.ErrnoException, socket: HttpSocket) =>
      refuseBrokenRequest(error, socket, brokenRequest),
    );
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

  /** Those too that were opened in advance, as browsers and load balancers do: node takes them for requests. */
  private closeIdle(): void {
    this.server.closeIdleConnections();
    const silent = performance.now() - LONGEST_SILENCE;
    for (const [socket, opened] of this.connections) if (socket.bytesRead === 0 && opened < silent) socket.destroy();
  }
}

const STATUS_OF: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
};

function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: HttpSocket, bodyFor: BrokenRequestBody): void {
  // bytes written into an answer under way would corrupt it
  if (error.code === 'ECONNRESET' || !socket.writable || socket._httpMessage?._headerSent) return void socket.destroy();
  const [status, phrase] = STATUS_OF[error.code ?? ''] ?? [400, 'Bad Request'];
  const requestId = randomUUID();
  const body = bodyFor(status, requestId);
  socket.end(
    [
      `HTTP/1.1 ${status} ${phrase}`,
      'Content-Type: application/json; charset=utf-8',
      'Cache-Control: no-store',
      'X-Content-Type-Options: nosniff',
      `X-Request-Id: ${requestId}`,
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}
