import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CHECK_INTERVAL_MS } from '../../src/http/callers/operator-credentials.js';
import { SETTLE_TIME_MS, WatchedFile } from '../../src/platform/files/watched-file.js';
import { MetricsRegistry } from '../../src/platform/metrics.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })); // not the timers of promises
afterEach(() => void vi.useRealTimers());

it('the file of the operator tokens is in use 2 s after its change at the latest', async () => {
  const use = vi.fn();
  let content = 'before';
  const rules = { read: async () => content, current: content, use, checkIntervalMs: CHECK_INTERVAL_MS };
  const file = new WatchedFile('ADMIN_TOKENS_FILE', rules, new MetricsRegistry());
  file.start();
  await vi.advanceTimersByTimeAsync(CHECK_INTERVAL_MS + 1); // the change is right after a check
  content = 'after';
  await vi.advanceTimersByTimeAsync(1_999 - SETTLE_TIME_MS);
  vi.useRealTimers(); // a poll would advance the others
  await expect.poll(() => use.mock.calls).toEqual([['after']]);
  file.stop();
});
