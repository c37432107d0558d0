import { expect, it } from 'vitest';
import { MovingClock } from '../../src/testing/moving-clock.js';

const waited = async (clock: MovingClock, time: number) => {
  const begun = performance.now();
  await clock.reach(time);
  return performance.now() - begun;
};

it('waits until a time is past', async () => {
  const clock = new MovingClock();
  const time = clock.now() + 30;
  await clock.reach(time);
  expect(clock.now()).toBeGreaterThan(time);
});

it('waits for no time that is past', async () => {
  const clock = new MovingClock();
  expect(await waited(clock, clock.now() - 1_000)).toBeLessThan(100);
});

it('holds up nobody for whom it was set back between the time and the wait for it', async () => {
  const clock = new MovingClock();
  const time = clock.now() + 30;
  clock.move(-60);
  const milliseconds = await waited(clock, time);
  expect(milliseconds).toBeGreaterThan(30);
  expect(milliseconds).toBeLessThan(1_500);
});
