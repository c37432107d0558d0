import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { BrokenRequest } from './broken-request.js';

/** More requests than this without a response end the connection. No known client sends so many. */
const MAX_PIPELINED_REQUESTS = 16;

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  finish(): void;
}

/** A connection with its requests that have no complete response yet. Node sends their responses in their order. */
export class Connection {
  private readonly exchanges = new Set<Exchange>();
  /** Its response may be complete before its body. */
  private lastRequest: IncomingMessage | undefined;
  /** Whether the connection has had its last request. Nothing more is handled then (RFC 9112 §9.6). */
  private isEnding = false;

  constructor(private readonly socket: Socket) {
    // node emits no `close` of a response that waits for an earlier one
    socket.once('close', () => {
      for (const exchange of this.exchanges) exchange.finish();
    });
  }

  /**
   * @param finish called once, when the response is complete or the connection has ended
   * @returns false if the request must not be handled
   */
  begin(request: IncomingMessage, response: ServerResponse, finish: () => void): boolean {
    if (this.isEnding || !this.socket.writable) return false;
    if (this.exchanges.size >= MAX_PIPELINED_REQUESTS) {
      this.socket.destroy();
      return false;
    }
    const exchange: Exchange = {
      request,
      response,
      finish: () => void (this.exchanges.delete(exchange) && finish()),
    };
    this.exchanges.add(exchange);
    this.lastRequest = request;
    response.once('close', exchange.finish);
    return true;
  }

  end(): void {
    this.isEnding = true;
  }

  /**
   * Ends the connection, whose input is broken or too slow, with one error response. Earlier requests that arrived
   * completely get their responses first (RFC 9112 §9.3.2).
   *
   * @param errorResponse the whole response, if no handler can write it
   */
  endBroken(broken: BrokenRequest, errorResponse: () => string): void {
    if (this.isEnding) return;
    this.isEnding = true;
    const last = [...this.exchanges].at(-1);
    if (this.lastRequest?.complete === false) {
      if (last?.request !== this.lastRequest) return void this.socket.destroySoon(); // it has its response
      // the handler responds: with this error if it reads the body, else with its own response
      last.response.shouldKeepAlive = false;
      last.request.broken = broken;
      last.request.emit('broken');
      return;
    }
    const write = () => {
      if (this.socket.writable) this.socket.write(errorResponse());
      this.socket.destroySoon();
    };
    if (last) last.response.once('close', write);
    else write();
  }
}
