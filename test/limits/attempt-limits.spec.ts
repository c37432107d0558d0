import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { Limits } from '../../src/oauth/limits.js';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import { AbandonedTaskError, BoundedQueue, QueueFullError } from '../../src/platform/bounded-queue.js';
import { Clock } from '../../src/platform/clock.js';
import { Configuration } from '../../src/platform/configuration/configuration.js';
import { DEFAULT_LIMITS } from '../../src/platform/configuration/rate-limit-rule.js';
import { MetricsRegistry } from '../../src/platform/metrics.js';
import { AttemptLimits } from '../../src/token/attempt-limits.js';
import type { GrantBody, GrantMetadata } from '../../src/token/grant.js';
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
  const limits = new AttemptLimits(new Limits(configuration, new Clock(), new MetricsRegistry()));
  const FEW = { per: ['phone'], limit: '1/86400' };
  const MANY = { per: ['phone'], limit: '1000000/86400' };
  const statusOf = async (name: string, attempts: object[], phone: string) => {
    const [grant, body] = [{ name, attempts }, { phone }] as unknown as [GrantMetadata, GrantBody];
    const refused = limits.run(grant, body, () => Promise.reject(OAuthError.invalidGrant('wrong')));
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
