import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { HttpSocket } from './http-socket.js';

/** More requests than this, behind one that has no response yet, end the connection. No known client sends so many. */
const MAX_WAITING_REQUESTS = 16;

interface Waiting {
  request: IncomingMessage;
  response: ServerResponse;
}

/**
 * Requests that a client sent without waiting for the response to an earlier one. They are handled one after another:
 * only safe methods may be handled in parallel (RFC 9112 §9.3.2), and nothing may be handled behind an error that ends
 * the connection.
 */
export class PipelinedRequests {
  private readonly waiting = new WeakMap<HttpSocket, Waiting[]>();

  constructor(private readonly handle: RequestListener) {}

  add(request: IncomingMessage, response: ServerResponse): void {
    const socket: HttpSocket = request.socket;
    let queue = this.waiting.get(socket);
    if (!queue) {
      queue = [];
      this.waiting.set(socket, queue);
      socket._httpMessage?.once('close', () => this.handleNext(socket));
    }
    if (queue.push({ request, response }) > MAX_WAITING_REQUESTS) socket.destroy();
  }

  private handleNext(socket: HttpSocket): void {
    const next = this.waiting.get(socket)?.shift();
    if (!next || socket.destroyed) return void this.waiting.delete(socket);
    next.response.once('close', () => this.handleNext(socket));
    this.handle(next.request, next.response);
  }
}
