import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Purge } from '../../src/identity/purge.js';

const MINUTE_MS = 60_000;

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('the next purge of a process begins 45 to 75 minutes after the end of the one before, also if that has failed', async () => {
  const unused = undefined as never;
  const purge = new Purge(unused, unused, unused, unused, unused, unused, unused, unused);
  const ends: ((error?: Error) => void)[] = [];
  const run = () =>
    new Promise<undefined>((resolve, reject) => {
      ends.push((error) => (error ? reject(error) : resolve(undefined)));
    });
  vi.spyOn(purge, 'run').mockImplementation(run);
  vi.spyOn(Logger.prototype, 'warn').mockReturnValue();
  purge.onApplicationBootstrap();
  for (const error of [undefined, new Error('the database is unavailable'), undefined]) {
    const begun = ends.length;
    await vi.advanceTimersByTimeAsync(45 * MINUTE_MS - 1);
    expect(ends).toHaveLength(begun);
    await vi.advanceTimersByTimeAsync(30 * MINUTE_MS + 1);
    expect(ends).toHaveLength(begun + 1);
    await vi.advanceTimersByTimeAsync(1_000 * MINUTE_MS);
    expect(ends, 'the purge has not ended').toHaveLength(begun + 1);
    ends.at(-1)?.(error);
    await vi.advanceTimersByTimeAsync(0);
  }
  purge.onApplicationShutdown();
  await vi.advanceTimersByTimeAsync(1_000 * MINUTE_MS);
  expect(ends, 'the process stops').toHaveLength(3);
});
