import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { AbandonedTaskError, BoundedQueue, QueueFullError } from '../../src/platform/bounded-queue.js';

/** A task that runs until the test ends it. */
function controlledTask() {
  let resolve: (result: string) => void = () => {};
  const promise = new Promise<string>((settle) => {
    resolve = settle;
  });
  const state = { started: false };
  const run = () => {
    state.started = true;
    return promise;
  };
  return { run, state, resolve };
}

it('runs tasks in the order of their arrival, and at most maxRunning at a time', async () => {
  const queue = new BoundedQueue({ maxRunning: 2, maxWaiting: 3 });
  const tasks = Array.from({ length: 5 }, controlledTask);
  const results = tasks.map(({ run }) => queue.run(run));
  const started = () => tasks.map(({ state }) => state.started);
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

it('rejects a task if the queue is full, and accepts a task again when there is room', async () => {
  const queue = new BoundedQueue({ maxRunning: 1, maxWaiting: 1 });
  const [first, second, third] = [controlledTask(), controlledTask(), controlledTask()];
  const results = [queue.run(first.run), queue.run(second.run)];
  await expect(queue.run(third.run)).rejects.toThrow(QueueFullError);
  first.resolve('');
  await results[0];
  results.push(queue.run(third.run));
  second.resolve('');
  third.resolve('third');
  expect(await results[2]).toBe('third');
});

it('never runs a task that was abandoned while it waited, and frees its position in the queue', async () => {
  const queue = new BoundedQueue({ maxRunning: 1, maxWaiting: 1 });
  const [first, second, third] = [controlledTask(), controlledTask(), controlledTask()];
  const controller = new AbortController();
  const running = queue.run(first.run);
  const abandoned = queue.run(second.run, controller.signal);
  controller.abort();
  await expect(abandoned).rejects.toThrow(AbandonedTaskError);
  const next = queue.run(third.run);
  first.resolve('');
  third.resolve('third');
  await running;
  expect(await next).toBe('third');
  expect(second.state.started).toBe(false);
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
