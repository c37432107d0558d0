import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Configuration } from '../configuration/configuration.js';
import { onLastResponse } from '../private-members.js';
import { headerValues, RequestContext, requestContext } from '../request-context/request-context.js';
import type { Telemetry } from '../telemetry.js';
import { CONNECTION_LIMITS, type ConnectionLimits, MAX_HEADER_LINES, serverOptions } from './connection-limits.js';
import {
  type BrokenRequest,
  brokenRequestOf,
  brokenRequestResponse,
  closeLingering,
  endBrokenConnection,
  keepAddress,
} from './http-socket.js';
import { OpenConnections, PipelinedRequests } from './open-connections.js';
import { type Port, targetOn } from './surfaces.js';

export interface ListenerHooks {
  starting: RequestListener;
  /** For bytes that never became a request, and so have no controller. */
  brokenRequest(status: number, requestId: string): string;
  telemetry: Telemetry;
}

const DRAIN_INTERVAL_MS = 50;
const MAX_DRAIN_MS = 5_000;

/** The status in log and metrics when the client left before the response was written; nginx uses the same. */
const CLIENT_CLOSED_REQUEST_STATUS = 499;

/** Until `serve` is called, the listener responds with `starting`. The public port opens only then. */
class Listener {
  private readonly server: Server;
  private readonly connections: OpenConnections;
  private closing = false;
  private handle: RequestListener;

  constructor(
    private readonly name: Port,
    private readonly address: { port: number; host: string | undefined },
    private readonly hooks: ListenerHooks,
    private readonly limits: ConnectionLimits,
  ) {
    this.handle = hooks.starting;
    this.connections = new OpenConnections(limits);
    const pipelined = new PipelinedRequests((request, response) => this.begin(request, response));
    const receive: RequestListener = (request, response) => {
      // node gives a response its socket when the responses before it are finished
      if (response.socket === null) pipelined.add(request, response);
      else this.begin(request, response);
    };
    this.server = createServer(serverOptions(limits), receive);
    this.server.maxHeadersCount = MAX_HEADER_LINES + 1; // one more than is accepted, so that node 20 shows the excess
    // an unknown expectation may be ignored (RFC 9110 §10.1.1); node would respond to it without a body
    this.server.on('checkExpectation', receive);
    this.server.on('connect', (_request, socket: Socket) => this.rejectTunnel(socket));
    this.server.on('connection', (socket) => {
      if (!keepAddress(socket)) return void socket.destroy();
      this.connections.add(socket);
      onLastResponse(socket, () => closeLingering(socket, limits.lingerMs));
    });
    this.server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => this.onClientError(error, socket));
  }

  /** Binds the address; rejects with the system's error, such as EADDRINUSE, and names the variable of the port. */
  async listen(): Promise<void> {
    const { port, host } = this.address;
    const variable = this.name === 'public' ? 'PORT' : `${this.name.toUpperCase()}_PORT`;
    this.server.listen({ port, ...(host && { host }) });
    await once(this.server, 'listening').catch(({ message }: Error) => {
      throw new Error(`${variable}: ${message}`);
    });
    this.connections.checkUntilClosed(this.server);
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
    // close() looks for idle connections once; others become idle when their responses are finished
    const idle = setInterval(() => {
      this.server.closeIdleConnections();
      this.connections.destroySilent();
    }, DRAIN_INTERVAL_MS);
    const cut = setTimeout(() => this.server.closeAllConnections(), MAX_DRAIN_MS);
    await closed;
    clearInterval(idle);
    clearTimeout(cut);
  }

  private begin(request: IncomingMessage, response: ServerResponse): void {
    if (!request.socket.writable) return; // the connection has sent its last response: RFC 9112 §9.6
    const violation = headViolation(request);
    if (violation !== undefined) return this.writeError(request.socket, brokenRequestOf(violation));
    request.isHandled = true;
    const context = new RequestContext(this.name, request);
    this.hooks.telemetry.requestReceived(context, request);
    response.once('close', () => {
      const status = response.writableFinished ? response.statusCode : CLIENT_CLOSED_REQUEST_STATUS;
      this.hooks.telemetry.requestFinished(context.finish(status));
    });
    if (this.closing) response.setHeader('Connection', 'close');
    request.url = targetOn(this.name, request.url ?? '/');
    requestContext.run(context, () => this.handle(request, response));
  }

  /** Without this listener, node closes the connection of a CONNECT without a response. */
  private rejectTunnel(socket: Socket): void {
    socket.on('error', () => socket.destroy()); // node has removed its own listeners
    this.endBroken(socket, 'CONNECT');
  }

  private onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === 'ECONNRESET') return void socket.destroy();
    this.endBroken(socket, error.code ?? error.message);
  }

  private endBroken(socket: Socket, reason: string): void {
    const broken = brokenRequestOf(reason);
    endBrokenConnection(socket, broken, this.limits.lingerMs, () => this.writeError(socket, broken));
  }

  private writeError(socket: Socket, { status, reason }: BrokenRequest): void {
    const id = randomUUID();
    const text = brokenRequestResponse(status, id, this.hooks.brokenRequest(status, id));
    closeLingering(socket, this.limits.lingerMs, text);
    const about = { surface: this.name, method: 'none', route: 'none', milliseconds: 0 };
    this.hooks.telemetry.requestFinished({ ...about, id, status, error: 'invalid_request', reason });
  }
}

/** `uri-host [ ":" port ]` of RFC 9112 §3.2; a registered name may be empty. */
const HOST = /^(?:\[[0-9A-Za-z:.%_~-]+\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::\d*)?$/;

/** Rules that node's parser does not enforce. An empty Host is valid: the service never reads it (RFC 9112 §3.3). */
function headViolation(request: IncomingMessage): string | undefined {
  const { httpVersion, headers, rawHeaders } = request;
  // HTTP/0.9 has no version in its request line; node's parser takes HTTP/2.0 in the syntax of HTTP/1.1
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return 'HTTP version';
  if (rawHeaders.length > 2 * MAX_HEADER_LINES) return 'HPE_HEADER_OVERFLOW'; // node 20 leaves out what is beyond
  const { host } = headers;
  if (host === undefined) return httpVersion === '1.1' ? 'no Host' : undefined;
  if (!HOST.test(host)) return 'invalid Host';
  // `headers` has only the first Host
  return headerValues(request, 'host').length > 1 ? 'more than one Host' : undefined;
}

/** The public port, the management port, and the ports that take routes over from the latter (protocol §1.5). */
export class Listeners {
  private readonly listeners: { public: Listener; management: Listener; admin?: Listener; metrics?: Listener };

  constructor(
    { HOST: host, PORT, MANAGEMENT_PORT, ADMIN_PORT, METRICS_PORT }: Configuration,
    hooks: ListenerHooks,
    limits: Partial<ConnectionLimits> = {},
  ) {
    const listenerOf = (name: Port, port: number) =>
      new Listener(name, { port, host }, hooks, { ...CONNECTION_LIMITS[name], ...limits });
    this.listeners = {
      public: listenerOf('public', PORT),
      management: listenerOf('management', MANAGEMENT_PORT),
      ...(ADMIN_PORT !== undefined && { admin: listenerOf('admin', ADMIN_PORT) }),
      ...(METRICS_PORT !== undefined && { metrics: listenerOf('metrics', METRICS_PORT) }),
    };
  }

  async listenForManagement(): Promise<void> {
    const { management, admin, metrics } = this.listeners;
    for (const listener of [management, admin, metrics]) await listener?.listen();
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

  get ports(): { port: number; managementPort: number; adminPort?: number; metricsPort?: number } {
    const { management, admin, metrics } = this.listeners;
    return {
      port: this.listeners.public.port,
      managementPort: management.port,
      ...(admin && { adminPort: admin.port }),
      ...(metrics && { metricsPort: metrics.port }),
    };
  }
}
