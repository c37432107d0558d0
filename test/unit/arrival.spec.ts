import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { arrivalOf, noteArrival, noteConnection } from '../../src/platform/http/arrival.js';
import { MovingClock } from '../../src/testing/moving-clock.js';

const NOON = Date.UTC(2097, 0, 2, 12);

let clock: MovingClock;
let elapsed: number;
beforeEach(() => {
  elapsed = 0;
  vi.useFakeTimers({ toFake: ['Date', 'setImmediate'], now: NOON });
  vi.spyOn(performance, 'now').mockImplementation(() => elapsed);
  clock = new MovingClock();
});
afterEach(() => {
  vi.runAllTimers();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Keeps the event loop busy for so many milliseconds. */
function work(milliseconds: number): void {
  elapsed += milliseconds;
  vi.setSystemTime(NOON + elapsed);
}

/** Lets so many milliseconds pass, and with them turns of the event loop. */
function pass(milliseconds: number): void {
  vi.runAllTimers();
  work(milliseconds);
}

function accepted(): Socket {
  const socket = new Socket();
  noteConnection(socket);
  return socket;
}

function requestOn(socket: Socket): IncomingMessage {
  const request = new IncomingMessage(socket);
  noteArrival(request);
  return request;
}

describe('when a request came', () => {
  it('is when its headers were there, however long it then waited for its turn', () => {
    const request = requestOn(new Socket());
    expect(arrivalOf(request, clock)).toBe(NOON);
    pass(250);
    expect(arrivalOf(request, clock)).toBe(NOON);
  });

  it('is when its connection was accepted, if it is the first on it and follows at once', () => {
    const socket = accepted();
    pass(300);
    const first = requestOn(socket);
    pass(10);
    const second = requestOn(socket);
    pass(10);
    expect(arrivalOf(first, clock)).toBe(NOON);
    expect(arrivalOf(second, clock)).toBe(NOON + 310);
  });

  it('is its own time on a connection that was opened in advance', () => {
    const socket = accepted();
    pass(1_500);
    expect(arrivalOf(requestOn(socket), clock)).toBe(NOON + 1_500);
  });

  it('is one time for all that one turn of the event loop reads', () => {
    const first = requestOn(new Socket());
    work(30);
    const second = requestOn(new Socket());
    pass(5);
    const third = requestOn(new Socket());
    expect([first, second, third].map((request) => arrivalOf(request, clock))).toEqual([NOON, NOON, NOON + 35]);
  });

  it('is told by the clock of the service', () => {
    const request = requestOn(new Socket());
    clock.move(3_600);
    pass(40);
    expect(arrivalOf(request, clock)).toBe(NOON + 3_600_000);
  });

  it('is now for a request that nobody has noted', () => {
    expect(arrivalOf(new IncomingMessage(new Socket()), clock)).toBe(NOON);
  });
});
