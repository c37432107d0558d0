import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { DeadlineExceededError } from '../../src/platform/database/database-errors.js';
import { OutageLog } from '../../src/platform/database/database-metrics.js';

const lines: string[] = [];
let now = 0;
let outages: OutageLog;
beforeEach(() => {
  lines.length = 0;
  now = 0;
  outages = new OutageLog();
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  for (const level of ['log', 'warn'] as const)
    vi.spyOn(Logger.prototype, level).mockImplementation((message) => void lines.push(`${level}: ${message}`));
});
afterEach(() => vi.restoreAllMocks());

const failAt = (...times: number[]) => {
  for (const time of times) {
    now = time;
    outages.failed(new Error('connect ECONNREFUSED'));
  }
};

it('the log has one line when the database is unavailable and one when it is available again', () => {
  failAt(0, 999);
  expect(lines).toEqual([]);
  failAt(1_000, 2_000, 60_000);
  const start = 'warn: the database is unavailable, and requests that need it get 503: connect ECONNREFUSED';
  expect(lines).toEqual([start]);
  now = 61_400;
  outages.succeeded();
  outages.succeeded();
  expect(lines).toEqual([start, 'log: the database is available again after 61 s']);
});

it('the log has no line about an outage if other statements succeed between those that fail', () => {
  for (const time of [0, 900, 1_800, 2_700]) {
    failAt(time);
    outages.succeeded();
  }
  expect(lines).toEqual([]);
});

it('the message of a statement without a response has whole milliseconds', () => {
  expect(new DeadlineExceededError(91.4248729999963).message).toBe('the database did not respond within 91 ms');
});
