import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { oldestResponse } from '../private-members.js';
import type { ConnectionLimits } from './connection-limits.js';

/** How long a connection that was opened in advance may stay silent while its listener closes. */
const MAX_SILENCE_WHILE_CLOSING_MS = 1_000;
/** How long a request that has arrived completely may take, before the connection counts as stalled. */
const HANDLING_ALLOWANCE_MS = 5_000;

interface Activity {
  openedAt: number;
  /** As of the last check. */
  bytesWritten: number;
  writtenAt: number;
}

/** The connections of one listener: their number and the time without a response are bounded. */
export class OpenConnections {
  /** In the order of their last response, the oldest first, with the precision of the checks. */
  private readonly activities = new Map<Socket, Activity>();

  constructor(private readonly limits: ConnectionLimits) {}

  add(socket: Socket): void {
    const now = performance.now();
    this.activities.set(socket, { openedAt: now, bytesWritten: 0, writtenAt: now });
    socket.once('close', () => this.activities.delete(socket));
    if (this.activities.size > this.limits.maxConnections) this.destroy(this.mostDispensable(socket) ?? socket);
  }

  checkUntilClosed(server: Server): void {
    const checks = setInterval(() => this.destroyStalled(), this.limits.checkIntervalMs).unref();
    server.once('close', () => clearInterval(checks));
  }

  /** Destroys unused connections. Browsers open connections in advance, and node does not count these as idle. */
  destroySilent(): void {
    const openedBefore = performance.now() - MAX_SILENCE_WHILE_CLOSING_MS;
    for (const [socket, { openedAt }] of this.activities)
      if (socket.bytesRead === 0 && openedAt < openedBefore) this.destroy(socket);
  }

  /** Node's own timeouts do not end with every response that is not read, nor with line ends between two requests. */
  private destroyStalled(): void {
    const { keepAliveTimeoutMs, requestTimeoutMs, readingTimeoutMs } = this.limits;
    const idleTimeoutMs = keepAliveTimeoutMs + requestTimeoutMs + HANDLING_ALLOWANCE_MS;
    const now = performance.now();
    for (const [socket, activity] of [...this.activities]) {
      const { bytesWritten } = socket;
      if (bytesWritten !== activity.bytesWritten) {
        this.activities.delete(socket); // to the end of the order
        this.activities.set(socket, { ...activity, bytesWritten, writtenAt: now });
      } else if (now - activity.writtenAt > (socket.writableLength > 0 ? readingTimeoutMs : idleTimeoutMs)) {
        this.destroy(socket);
      }
    }
  }

  private mostDispensable(newcomer: Socket): Socket | undefined {
    let chosen: Socket | undefined;
    let chosenRank = Number.POSITIVE_INFINITY;
    for (const socket of this.activities.keys()) {
      const rank = socket === newcomer ? Number.POSITIVE_INFINITY : rankOf(socket);
      if (rank >= chosenRank) continue;
      chosen = socket;
      chosenRank = rank;
      if (rank === 0) break;
    }
    return chosen;
  }

  private destroy(socket: Socket): void {
    this.activities.delete(socket); // its 'close' event comes later
    socket.destroy();
  }
}

/** The lowest rank is destroyed first. A connection whose complete request is being handled is never destroyed. */
function rankOf(socket: Socket): number {
  const response = oldestResponse(socket);
  if (!socket.writable) return 0; // it has had its last response
  if (!response) return socket.bytesWritten === 0 ? 0 : 2; // no request yet, or idle
  if (!response.req.complete) return 0;
  return socket.writableLength > 0 ? 1 : Number.POSITIVE_INFINITY; // its response is not being read
}

/** More requests than this, behind one that has no response yet, end the connection. No known client sends so many. */
const MAX_WAITING_REQUESTS = 16;

interface Waiting {
  request: IncomingMessage;
  response: ServerResponse;
}

/**
 * Pipelined requests run one after another: only safe methods may run in parallel (RFC 9112 §9.3.2), and nothing after
 * an error that ends the connection.
 */
export class PipelinedRequests {
  private readonly waiting = new WeakMap<Socket, Waiting[]>();

  constructor(private readonly handle: RequestListener) {}

  add(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    let queue = this.waiting.get(socket);
    if (!queue) {
      queue = [];
      this.waiting.set(socket, queue);
      oldestResponse(socket)?.once('close', () => this.handleNext(socket));
    }
    if (queue.push({ request, response }) > MAX_WAITING_REQUESTS) socket.destroy();
  }

  private handleNext(socket: Socket): void {
    const next = this.waiting.get(socket)?.shift();
    if (!next || socket.destroyed) return void this.waiting.delete(socket);
    next.response.once('close', () => this.handleNext(socket));
    this.handle(next.request, next.response);
  }
}
