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
const LONGEST_DRAIN = 8_000;

/** The JSON body for bytes that never became a request, and so have no controller to answer them. */
export type BrokenRequestBody = (status: number, requestId: string) => string;

/** What node keeps of the answer under way on a socket. */
type HttpSocket = Socket & { _httpMessage?: { _headerSent?: boolean } };

/** One of the two addresses of the service. Until the application serves, it answers with `starting`. */
export class Listener {
  private readonly server: Server;
  private readonly connections = new Set<Socket>();
  private handle: RequestListener;

  constructor(surface: Surface, starting: RequestListener, brokenRequest: BrokenRequestBody) {
    this.handle = starting;
    const serve: RequestListener = (request, response) => {
      if (request.headers.host === undefined && request.httpVersion === '1.1') {
        return refuseBrokenRequest(new Error('no Host'), request.socket, brokenRequest); // RFC 9112 section 3.2
      }
      noteArrival(request);
      request.url = targetOn(surface, request.url ?? '/');
      this.handle(request, response);
    };
    this.server = createServer(LIMITS, serve);
    this.server.on('checkExpectation', serve); // node's own refusal has no body; RFC 9110 lets us ignore what it says
    this.server.maxConnections = MAX_CONNECTIONS;
    this.server.on('connection', (socket) => {
      noteConnection(socket);
      this.connections.add(socket);
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

  /** Accepts nothing more, lets what has begun be answered, and cuts what is left after 8 s. */
  async close(): Promise<void> {
    if (!this.server.listening) return;
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
    for (const socket of this.connections) if (socket.bytesRead === 0) socket.destroy();
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
