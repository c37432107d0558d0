import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Offboarding } from '../../src/operator/registry/offboarding/offboarding.js';
import type { DatabaseStart } from '../../src/platform/database/database-start.js';
import { MetricsRegistry } from '../../src/platform/metrics.js';

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

it('a process looks for a due off-boarding 15 s after the end of the look before, also if that has failed, until it stops', async () => {
  const unused = undefined as never;
  const start = { isOfCommand: false } as DatabaseStart;
  const offboarding = new Offboarding(
    unused,
    unused,
    unused,
    unused,
    unused,
    unused,
    unused,
    start,
    new MetricsRegistry(),
  );
  const ends: ((error?: Error) => void)[] = [];
  vi.spyOn(offboarding, 'run').mockImplementation(
    () => new Promise((resolve, reject) => ends.push((error) => (error ? reject(error) : resolve()))),
  );
  vi.spyOn(Logger.prototype, 'warn').mockReturnValue();
  offboarding.onApplicationBootstrap();
  for (const error of [undefined, new Error('the database is unavailable'), undefined]) {
    const begun = ends.length;
    await vi.advanceTimersByTimeAsync(14_999);
    expect(ends).toHaveLength(begun);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(ends, 'one look at a time').toHaveLength(begun + 1);
    ends.at(-1)?.(error);
    await vi.advanceTimersByTimeAsync(0);
  }
  offboarding.onApplicationShutdown();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ends, 'the process stops').toHaveLength(3);
});
