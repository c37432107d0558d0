import type { LimitDeclarations } from 'customer-authorization-service/grant';
import { DEFAULT_LIMITS, parseLimit } from 'customer-authorization-service/testing-host';
import type { TestClock } from './test-clock.js';
import type { TestService } from './test-service.js';

/** Limits of the service that no test reaches. Limits of grants and extensions keep their values. */
const HIGH_LIMITS = Object.keys(DEFAULT_LIMITS)
  .map((name) => `${name}=1000000/1`)
  .join();
/** The time that guesses may need, on a slow machine too. */
const GUESSES_SECONDS = 60;

interface Context {
  environment: { service: { clock: TestClock } };
  secondService(environment: Record<string, string>): Promise<TestService>;
}

/**
 * Does work with a second process whose rate limits are on, except those of the service itself. No window of a declared
 * limit ends meanwhile, because a new window would allow further guesses.
 */
export async function withLimits(
  context: Context,
  limits: string[],
  work: (service: TestService) => Promise<unknown>,
): Promise<void> {
  const { clock } = context.environment.service;
  const seconds = secondsUntilWindow(
    clock.seconds(),
    limits.map((limit) => parseLimit(limit)?.seconds ?? 1),
  );
  clock.advance({ seconds });
  try {
    const limited = await context.secondService({ RATE_LIMIT: HIGH_LIMITS });
    await work(limited).finally(limited.stop);
  } finally {
    clock.advance({ seconds: -seconds });
  }
}

/** The limits that an extension declares. */
export const limitsOf = ({ limits = {} }: { limits?: LimitDeclarations }): string[] => Object.values(limits);

/** The seconds from a time until no window ends soon. The windows of a limit begin at multiples of their length. */
export function secondsUntilWindow(nowSeconds: number, windowsSeconds: number[]): number {
  const endsSoon = (time: number) =>
    windowsSeconds.some((window) => window - (time % window) < Math.min(GUESSES_SECONDS, window / 2));
  let seconds = 0;
  while (endsSoon(nowSeconds + seconds) && seconds < 86_400) seconds++;
  return seconds;
}
