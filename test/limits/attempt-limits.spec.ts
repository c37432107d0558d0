import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import { AbandonedTaskError, QueueFullError } from '../../src/platform/bounded-queue.js';
import { Clock } from '../../src/platform/clock.js';
import { Configuration } from '../../src/platform/configuration/configuration.js';
import { DEFAULT_LIMITS } from '../../src/platform/configuration/rate-limit-rule.js';
import { MetricsRegistry } from '../../src/platform/metrics.js';
import { RateLimits } from '../../src/rate-limit/rate-limits.js';
import { AttemptLimits } from '../../src/token/attempt-limits.js';
import { AttemptQueue, QueueTimeoutError } from '../../src/token/attempt-queue.js';

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

  it('rejects all waiting requests of a key that the refused requests have used up', async () => {
    await enter(0);
    let used = false;
    const limited = () => {
      if (used) throw OAuthError.rateLimited(1, 'attempts');
      return request().fullKey();
    };
    const signal = new AbortController().signal;
    const all = [1, 2].map(() => queue.enter({ keys: ['key'], fullKey: limited }, () => signal));
    used = true;
    queue.leave(request());
    for (const each of all) await expect(each).rejects.toMatchObject({ status: 429 });
  });
});
