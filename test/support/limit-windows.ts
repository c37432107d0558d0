import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { RateLimits } from '../../src/rate-limit/rate-limits.js';
import type { TestService } from './test-service.js';

const HOUR_MS = 3_600_000;
/** Longer than a machine with other work needs, unlike the timeouts of the service. */
const LONG_MS = 120_000;

/**
 * Moves the clock to the start of an hour, so that no window of a limit ends during a test. Several services get the
 * same hour, also if the test started them before and after the start of an hour.
 */
export function beginWindow(...services: TestService[]): void {
  const latest = Math.max(...services.map(({ clock }) => clock.now()));
  const start = latest + HOUR_MS - (latest % HOUR_MS);
  for (const { clock } of services) clock.advance({ milliseconds: start - clock.now() });
}

/** The part of a process that shares its counts through Redis. */
interface SharedCounts {
  redis: Redis;
  /** The exchange in progress. */
  exchange: Promise<void> | undefined;
  counts: () => { pending: unknown[] }[];
}

const sharedCountsOf = ({ application }: TestService): SharedCounts =>
  Reflect.get(application.get(RateLimits, { strict: false }), 'shared');

/** Waits until the process has reached Redis. A process loses its counts for Redis if it has not reached Redis yet. */
export async function untilConnected(service: TestService): Promise<void> {
  await expect.poll(() => sharedCountsOf(service).redis.status).toBe('ready');
}

/** Waits until Redis has the counts of the process, and the process the counts of Redis for the same keys. */
export async function untilExchanged(service: TestService): Promise<void> {
  const shared = sharedCountsOf(service);
  const isExchanged = () =>
    shared.exchange === undefined && shared.counts().every(({ pending }) => pending.length === 0);
  await expect.poll(isExchanged).toBe(true);
}

/** Connects processes with Redis, and moves their clocks to the start of one window. */
export async function shareCounts(...services: TestService[]): Promise<void> {
  for (const service of services) {
    useLongRedisTimeouts(service);
    await untilConnected(service);
  }
  beginWindow(...services);
}

/** Gives Redis two minutes for each command. A command that timed out is not repeated, so its counts would be lost. */
function useLongRedisTimeouts(service: TestService): void {
  Object.assign(sharedCountsOf(service).redis.options, { commandTimeout: LONG_MS, socketTimeout: LONG_MS });
}
