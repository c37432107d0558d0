import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import { AbandonedTaskError, BoundedQueue, QueueFullError } from '../../src/platform/bounded-queue.js';
import { Clock } from '../../src/platform/clock.js';
import { Configuration } from '../../src/platform/configuration/configuration.js';
import { DEFAULT_LIMITS } from '../../src/platform/configuration/rate-limit-rule.js';
import { MetricsRegistry } from '../../src/platform/metrics.js';
import { RateLimits } from '../../src/rate-limit/rate-limits.js';
import { AttemptLimits } from '../../src/token/attempt-limits.js';
import { AttemptQueue, QueueTimeoutError } from '../../src/token/attempt-queue.js';
import { deferred } from '../support/deferred.js';

/** A task that runs until the test ends it. */
function controlledTask() {
  const { promise, resolve } = deferred<string>();
  const run = vi.fn(() => promise);
  return { run, resolve };
}

const MAX_KEYS = 100_000;

describe('refused requests of one limit', () => {
  const configuration = Object.assign(new Configuration(), { RATE_LIMIT: DEFAULT_LIMITS });
  const limits = new AttemptLimits(new RateLimits(configuration, new Clock(), new MetricsRegistry()));
  const FEW = { per: ['phone'], limit: '1/86400' };
  const MANY = { per: ['phone'], limit: '1000000/86400' };
  const statusOf = async (name: string, attempts: object[], phone: string) => {
    const request = { grant: { name, attempts }, parameters: { phone } } as unknown as Parameters<
      AttemptLimits['run']
    >[0];
    const refused = limits.run(request, () => Promise.reject(OAuthError.invalidGrant('wrong')));
    return refused.then(
      () => 200,
      (error) => error.status,
    );
  };

  it('do not remove the counts of another grant, or of another limit of the grant', async () => {
    for (const expected of [400, 429]) expect(await statusOf('one', [MANY, FEW], 'victim')).toBe(expected);
    for (let i = 0; i <= MAX_KEYS; i++) await statusOf('other', [MANY], `flood ${i}`);
    expect(await statusOf('one', [MANY, FEW], 'victim')).toBe(429);
  });
});

describe('the queue of attempts', () => {
  let queue: AttemptQueue;
  let capacity: number;
  let started: number[];
  beforeEach(() => {
    vi.useFakeTimers();
    queue = new AttemptQueue();
    capacity = 1;
    started = [];
  });
  afterEach(() => void vi.useRealTimers());

  const request = (keys = ['key']) => ({
    keys,
    fullKey: () => keys.find((key) => queue.running(key) >= capacity),
  });
  const enter = (number: number, { keys = ['key'], signal = new AbortController().signal } = {}) =>
    queue.enter(request(keys), () => signal).then(() => void started.push(number));

  it('starts waiting requests in the order of their arrival, and only as many as have room', async () => {
    const all = [0, 1, 2, 3].map((number) => enter(number));
    await all[0];
    expect(started).toEqual([0]);
    queue.leave(request());
    await all[1];
    expect(started).toEqual([0, 1]);
    capacity = 2;
    queue.leave(request());
    await Promise.all(all);
    expect(started).toEqual([0, 1, 2, 3]);
  });

  it('checks one waiting request for each that has ended, and not all waiting ones', async () => {
    let evaluations = 0;
    const fullKey = () => {
      evaluations++;
      return request().fullKey();
    };
    const counted = { ...request(), fullKey };
    const all = Array.from({ length: 101 }, () => queue.enter(counted, () => new AbortController().signal));
    for (const each of all) {
      await each;
      queue.leave(counted);
    }
    expect(evaluations).toBeLessThanOrEqual(101 + 2 * 100);
  });

  it('rejects the 101st waiting request of a key at once, and none of another key', async () => {
    const all = Array.from({ length: 101 }, (_, number) => enter(number).catch(() => undefined));
    await expect(enter(101)).rejects.toThrow(QueueFullError);
    await enter(102, { keys: ['other'] });
    await vi.advanceTimersByTimeAsync(3_000);
    await Promise.all(all);
    expect(started).toEqual([0, 102]);
  });

  it('rejects a request that has waited for 3 s', async () => {
    await enter(0);
    const late = expect(enter(1)).rejects.toThrow(QueueTimeoutError);
    await vi.advanceTimersByTimeAsync(2_999);
    const soon = enter(2);
    await vi.advanceTimersByTimeAsync(1);
    await late;
    queue.leave(request());
    await soon;
    expect(started).toEqual([0, 2]);
  });

  it('never starts a waiting request whose client has disconnected', async () => {
    await enter(0);
    const client = new AbortController();
    const abandoned = expect(enter(1, { signal: client.signal })).rejects.toThrow(AbandonedTaskError);
    const next = enter(2);
    client.abort();
    await abandoned;
    await expect(enter(3, { signal: client.signal })).rejects.toThrow(AbandonedTaskError);
    queue.leave(request());
    await next;
    expect(started).toEqual([0, 2]);
  });

  it('starts a request of several keys only when all of them have room', async () => {
    await enter(0, { keys: ['a'] });
    await enter(1, { keys: ['b'] });
    const both = enter(2, { keys: ['a', 'b'] });
    queue.leave(request(['a']));
    await vi.advanceTimersByTimeAsync(0);
    expect(started).toEqual([0, 1]);
    queue.leave(request(['b']));
    await both;
    expect(started).toEqual([0, 1, 2]);
  });
});

describe('a bounded queue', () => {
  it('runs tasks in the order of their arrival, and at most maxRunning at a time', async () => {
    const queue = new BoundedQueue({ maxRunning: 2, maxWaiting: 3 });
    const tasks = Array.from({ length: 5 }, controlledTask);
    const results = tasks.map(({ run }) => queue.run(run));
    const started = () => tasks.map(({ run }) => run.mock.calls.length > 0);
    expect(started()).toEqual([true, true, false, false, false]);
    expect(queue.waiting).toBe(3);
    tasks[1]?.resolve('second');
    expect(await results[1]).toBe('second');
    await setImmediate();
    expect(started()).toEqual([true, true, true, false, false]);
    for (const task of tasks) task.resolve('done');
    expect(await Promise.all(results)).toEqual(['done', 'second', 'done', 'done', 'done']);
    expect(queue.waiting).toBe(0);
  });

  it('does not start a task that was abandoned before it arrived, and lets a running task end', async () => {
    const queue = new BoundedQueue({ maxRunning: 1, maxWaiting: 0 });
    await expect(queue.run(async () => 'never', AbortSignal.abort())).rejects.toThrow(AbandonedTaskError);
    const controller = new AbortController();
    const task = controlledTask();
    const result = queue.run(task.run, controller.signal);
    controller.abort();
    task.resolve('done');
    expect(await result).toBe('done');
  });

  it('abandons a task that waits too long, and keeps no timer of a task that has ended or was rejected', async () => {
    vi.useFakeTimers();
    const queue = new BoundedQueue({ maxRunning: 1, maxWaiting: 1 });
    const running = controlledTask();
    const first = queue.runWithin(1_000, running.run);
    expect(vi.getTimerCount()).toBe(0);
    const late = expect(queue.runWithin(1_000, async () => 'never')).rejects.toThrow(AbandonedTaskError);
    vi.advanceTimersByTime(1_000);
    await late;
    const next = queue.runWithin(1_000, async () => 'next');
    await expect(queue.runWithin(1_000, async () => 'never')).rejects.toThrow(QueueFullError);
    running.resolve('done');
    expect(await Promise.all([first, next])).toEqual(['done', 'next']);
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  it('runs the next task after a task that fails', async () => {
    const queue = new BoundedQueue({ maxRunning: 1, maxWaiting: 1 });
    const failing = queue.run(() => Promise.reject(new Error('a failure')));
    const next = queue.run(async () => 'next');
    await expect(failing).rejects.toThrow('a failure');
    expect(await next).toBe('next');
  });

  it('stays within its bounds for any order of arrivals, ends and disconnections', async () => {
    const step = fc.record({ does: fc.constantFrom('arrive', 'end', 'abandon'), which: fc.nat() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const queue = new BoundedQueue({ maxRunning: 2, maxWaiting: 3 });
        let running = 0;
        const ends: (() => void)[] = [];
        const controllers: AbortController[] = [];
        const settled: Promise<unknown>[] = [];
        const arrive = () => {
          const controller = new AbortController();
          controllers.push(controller);
          const task = async () => {
            running++;
            await new Promise<void>((resolve) => ends.push(resolve));
            running--;
          };
          settled.push(queue.run(task, controller.signal).catch(() => undefined));
        };
        const end = (which: number) => ends.splice(which % Math.max(1, ends.length), 1)[0]?.();
        for (const { does, which } of steps) {
          if (does === 'arrive') arrive();
          else if (does === 'end') end(which);
          else controllers[which % Math.max(1, controllers.length)]?.abort();
          await setImmediate();
          expect(running).toBeLessThanOrEqual(2);
          expect(queue.waiting).toBeLessThanOrEqual(3);
          if (queue.waiting > 0) expect(running).toBe(2);
        }
        while (running > 0) {
          end(0);
          await setImmediate();
        }
        await Promise.all(settled);
        expect(queue.waiting).toBe(0);
      }),
    );
  });
});
