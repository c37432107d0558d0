import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../clock.js';

/** Milliseconds: a connection that waited longer for its first request was opened in advance. */
const LONGEST_OPENING = 1_000;

const openedAt = new WeakMap<Socket, number>();
const arrivedAt = new WeakMap<IncomingMessage, number>();
/** When the present turn of the event loop read the first of what had come. */
let turn: number | undefined;
/** When the first was accepted of connections that have been coming in every turn since. */
let queue: number | undefined;
let accepted = 0;

/**
 * Notes that a connection was accepted: its first request has come then, though its bytes take a little longer. Node
 * accepts one in a turn, so those that came together come here turn by turn.
 */
export function noteConnection(socket: Socket): void {
  queue ??= beginningOfTurn();
  openedAt.set(socket, queue);
  const last = ++accepted;
  const endOfNextTurn = (act: () => void) => setImmediate(() => setImmediate(act));
  endOfNextTurn(() => {
    if (accepted === last) queue = undefined;
  });
}

/** Notes that a request's headers are here. */
export function noteArrival(request: IncomingMessage): void {
  const now = beginningOfTurn();
  const opened = openedAt.get(request.socket) ?? -Infinity;
  openedAt.delete(request.socket);
  arrivedAt.set(request, now - opened < LONGEST_OPENING ? opened : now);
}

/**
 * When a request came, in milliseconds since 1970: before it waited for anything of ours. What races for a code is told
 * from what replays it by this alone, so it is taken as early as can be.
 */
export function arrivalOf(request: IncomingMessage, clock: Clock): number {
  return Math.floor(clock.now() - (performance.now() - (arrivedAt.get(request) ?? performance.now())));
}

/** What one turn of the event loop reads was all there when it began, however long its first request then took. */
function beginningOfTurn(): number {
  if (turn === undefined) {
    turn = performance.now();
    setImmediate(() => {
      turn = undefined;
    });
  }
  return turn;
}
