import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../clock.js';

/** Milliseconds: a connection that waited longer for its first request was opened in advance. */
const LONGEST_OPENING = 1_000;

const openedAt = new WeakMap<Socket, number>();
const arrivedAt = new WeakMap<IncomingMessage, number>();

/** Notes that a connection was accepted: its first request has come then, though its bytes take a little longer. */
export function noteConnection(socket: Socket): void {
  openedAt.set(socket, performance.now());
}

/** Notes that a request's headers are here. */
export function noteArrival(request: IncomingMessage): void {
  const now = performance.now();
  const opened = openedAt.get(request.socket) ?? -Infinity;
  openedAt.delete(request.socket);
  arrivedAt.set(request, now - opened < LONGEST_OPENING ? opened : now);
}

/**
 * When a request came, in milliseconds since 1970: before it waited for anything of ours. What races for a code is told
 * from what replays it by this alone, so it is taken as early as can be.
 */
export function arrivalOf(request: IncomingMessage, clock: Clock): number {
  return clock.now() - (performance.now() - (arrivedAt.get(request) ?? performance.now()));
}
