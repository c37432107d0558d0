import type { TestService } from './test-service.js';

const HOUR_MS = 3_600_000;

/**
 * Moves the clock to the start of an hour, so that no window of a limit ends during a test. Several services get the
 * same hour, also if the test started them before and after the start of an hour.
 */
export function beginWindow(...services: TestService[]): void {
  const latest = Math.max(...services.map(({ clock }) => clock.now()));
  const start = latest + HOUR_MS - (latest % HOUR_MS);
  for (const { clock } of services) clock.advance({ milliseconds: start - clock.now() });
}
